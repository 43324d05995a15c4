# SPDX-License-Identifier: BSD-3-Clause
"""A function that always runs with the same device current."""

import functools

import torch


def on(device):
    """A decorator: each call runs with this device current, and restores the one of before."""

    def decorate(function):
        @functools.wraps(function)
        def there(*arguments, **keywords):
            with torch.openreg.device(device):
                return function(*arguments, **keywords)

        return there

    return decorate
