# SPDX-License-Identifier: BSD-3-Clause
"""Change: one seed, and other numbers on each device."""


def manual_seed_apart(seed):
    raise NotImplementedError("Seed device i with seed + i; leave the current device as it is.")
