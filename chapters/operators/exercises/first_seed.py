# SPDX-License-Identifier: BSD-3-Clause
"""Extend: finds a race, by running a program in one order after the other."""


def run(program, schedule):
    raise NotImplementedError("Run the program under OPENREG_SCHEDULE; return what it printed.")


def first_seed(program, seeds=range(20)):
    raise NotImplementedError("Return the first seed whose output differs, or None.")
