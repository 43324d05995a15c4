# SPDX-License-Identifier: BSD-3-Clause
"""Why an operation did not end in time."""

from datetime import timedelta

import torch.distributed as dist


def reason(work, seconds):
    """None if the operation is done within these seconds, or else the sentence of its error."""
    try:
        work.wait(timedelta(seconds=seconds))
    except dist.DistBackendError as error:
        return str(error)
    return None
