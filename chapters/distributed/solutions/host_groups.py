# SPDX-License-Identifier: BSD-3-Clause
"""The groups that two levels need, from the names of the hosts."""


def groups_of(hosts):
    """(the ranks of each host, the ranks with the same number on their hosts)

    `hosts` has the name of each rank's host, which must all have the same number of ranks.
    """
    inside = {}
    for rank, host in enumerate(hosts):
        inside.setdefault(host, []).append(rank)
    counts = {host: len(ranks) for host, ranks in inside.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"The hosts must have the same number of ranks; they have {counts}.")
    return list(inside.values()), [list(ranks) for ranks in zip(*inside.values(), strict=True)]
