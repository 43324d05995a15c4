# SPDX-License-Identifier: BSD-3-Clause
"""A test that fails if the function it tests has a race."""

import functools

from torch.openreg import sanitizer


def race_free(function):
    """The same function; it raises an AssertionError with the sentences of its races."""

    @functools.wraps(function)
    def searched(*arguments, **keywords):
        with sanitizer.finding_races():
            before = len(sanitizer.races())
            result = function(*arguments, **keywords)
            found = sanitizer.races()[before:]
        if found:
            raise AssertionError("\n".join(map(str, found)))
        return result

    return searched
