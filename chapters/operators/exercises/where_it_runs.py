# SPDX-License-Identifier: BSD-3-Clause
"""Change: on which device an operator would run."""


def where(*arguments):
    raise NotImplementedError("Return the one device of the tensors; numbers have none.")
