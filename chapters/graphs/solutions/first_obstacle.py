# SPDX-License-Identifier: BSD-3-Clause
"""Which line of a program keeps it from being captured."""

import traceback

import torch


def first_obstacle(function):
    """(sentence, line) of the first call in `function` that cannot be captured, or None."""
    graph, found = torch.accelerator.Graph(), None
    try:
        with torch.openreg.graph(graph):
            try:
                function()
            except RuntimeError as error:
                if not torch.openreg.is_current_stream_capturing():
                    raise
                frames = traceback.extract_tb(error.__traceback__)
                ours = [frame for frame in frames if "/torch/" not in frame.filename]
                found = str(error).splitlines()[0], ours[-1].line
    except RuntimeError:
        if found is None:
            raise
    finally:
        graph.reset()
    return found
