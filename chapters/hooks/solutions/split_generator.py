# SPDX-License-Identifier: BSD-3-Clause
"""Extend: several generators whose offsets do not overlap, from one."""


def split(generator, parts, offsets_each):
    """Returns `parts` generators that follow `generator`, each `offsets_each` offsets behind the last.

    `generator` itself moves on behind all of them, so splitting it again gives new ones. A part that
    takes more offsets than it has goes on with the next part's numbers. How many a kernel takes, the
    kernel says; the size of the tensor does not.

    Raises:
        ValueError: a part would have no offsets, or the offsets would not fit in 64 bits.
    """
    begin = generator.get_offset()
    end = begin + parts * offsets_each
    if parts < 1 or offsets_each < 1:
        raise ValueError(f"{parts} parts of {offsets_each} offsets; both must be at least 1.")
    if end >= 2**64:
        raise ValueError(
            f"{parts} parts of {offsets_each} offsets end at offset {end}, past 2**64."
        )
    clones = [generator.clone_state() for _ in range(parts)]
    for part, clone in enumerate(clones):
        clone.set_offset(begin + part * offsets_each)
    generator.set_offset(end)
    return clones
