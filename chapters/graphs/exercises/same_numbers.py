# SPDX-License-Identifier: BSD-3-Clause
"""Change: a replay that draws once more what the last one drew."""


class Repeatable:
    def __init__(self, graph):
        raise NotImplementedError("Keep the graph.")

    def replay(self):
        raise NotImplementedError("Replay with new numbers.")

    def again(self):
        raise NotImplementedError("Replay with the numbers of the last replay.")
