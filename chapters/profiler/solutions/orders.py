# SPDX-License-Identifier: BSD-3-Clause
"""How many orders of a program may have different results."""


def interleavings(streams):
    """Every order of all steps that keeps each stream's own order; a step is (stream, index)."""
    lengths = [len(steps) for steps in streams]

    def go(done, order):
        if done == lengths:
            yield tuple(order)
        for stream, length in enumerate(lengths):
            if done[stream] < length:
                rest = [*done[:stream], done[stream] + 1, *done[stream + 1 :]]
                yield from go(rest, [*order, (stream, done[stream])])

    return go([0] * len(streams), [])


def orders(streams):
    """The number of classes of equivalent orders; a step of a stream is (what it reads, writes)."""

    def conflict(one, other):
        (reads, writes), (others_reads, others_writes) = (streams[s][n] for s, n in (one, other))
        return writes & (others_reads | others_writes) or reads & others_writes

    def directions(order):
        pairs = ((a, b) for n, a in enumerate(order) for b in order[n + 1 :])
        return frozenset((a, b) for a, b in pairs if conflict(a, b))

    return len({directions(order) for order in interleavings(streams)})
