# SPDX-License-Identifier: BSD-3-Clause
"""Extend: several generators whose numbers never meet, from one."""


def split(generator, parts, numbers_each):
    """Returns `parts` generators that follow `generator`, each `numbers_each` offsets behind the last.

    `generator` itself moves on behind all of them, so splitting it again gives new ones.

    Raises:
        ValueError: a part would have no numbers, or the offsets would not fit in 64 bits.
    """
    begin = generator.get_offset()
    end = begin + parts * numbers_each
    if parts < 1 or numbers_each < 1:
        raise ValueError(f"{parts} parts of {numbers_each} numbers; both must be at least 1.")
    if end >= 2**64:
        raise ValueError(
            f"{parts} parts of {numbers_each} numbers end at offset {end}, past 2**64."
        )
    clones = [generator.clone_state() for _ in range(parts)]
    for part, clone in enumerate(clones):
        clone.set_offset(begin + part * numbers_each)
    generator.set_offset(end)
    return clones
