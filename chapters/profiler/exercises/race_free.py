# SPDX-License-Identifier: BSD-3-Clause
"""Change: a test that fails if the function it tests has a race."""


def race_free(function):
    raise NotImplementedError("Return a function that raises an AssertionError for each race.")
