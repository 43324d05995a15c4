# SPDX-License-Identifier: BSD-3-Clause
"""Extend: adds a counter to a trace: how many commands of each device are in flight."""


def add_commands_in_flight(trace):
    raise NotImplementedError("Append an event of the phase C at each change of the number.")
