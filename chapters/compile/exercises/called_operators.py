# SPDX-License-Identifier: BSD-3-Clause
"""Change: which operators a program in C++ leaves to the dispatcher."""


def operators(function, *arguments):
    raise NotImplementedError("Return the operators that the program in C++ calls, in its order.")
