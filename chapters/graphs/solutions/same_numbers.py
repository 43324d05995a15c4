# SPDX-License-Identifier: BSD-3-Clause
"""A replay that draws once more what the last one drew."""

import torch


class Repeatable:
    """A graph whose latest replay can be repeated, with the numbers that it drew."""

    def __init__(self, graph):
        self.graph = graph
        self.before = None

    def replay(self):
        self.before = torch.openreg.get_rng_state()
        self.graph.replay()

    def again(self):
        after = torch.openreg.get_rng_state()
        torch.openreg.set_rng_state(self.before)
        self.graph.replay()
        torch.openreg.set_rng_state(after)
