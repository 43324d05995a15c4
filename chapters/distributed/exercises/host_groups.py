# SPDX-License-Identifier: BSD-3-Clause
"""Change: the groups that two levels need, from the names of the hosts."""


def groups_of(hosts):
    raise NotImplementedError("Return the groups inside the hosts, and those that join the hosts.")
