# SPDX-License-Identifier: BSD-3-Clause
"""Results of a graphed callable that stay as they are."""

import torch


def kept(callable_):
    """The same function; no later call overwrites its results."""

    def copied(*arguments):
        results = callable_(*arguments)
        if isinstance(results, torch.Tensor):
            return results.clone()
        return tuple(result.clone() for result in results)

    return copied
