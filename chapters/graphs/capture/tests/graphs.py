# SPDX-License-Identifier: BSD-3-Clause
"""Captures a function."""

import torch

SCHEDULES = ["threads", "blocking", "seed:1", "seed:2", "seed:3"]


def captured(action, **options):
    """The graph of what `action()` does, and what it returned."""
    graph = torch.accelerator.Graph(**options)
    with torch.Stream(), graph:
        result = action()
    return graph, result
