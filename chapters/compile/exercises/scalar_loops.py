# SPDX-License-Identifier: BSD-3-Clause
"""Open: a code generator whose loops handle one element at a time."""

from torch_openreg.compile_kernels import Scheduling
from torch_openreg.compile_register import Preparation


class ScalarScheduling(Scheduling):
    def codegen_node(self, node):
        raise NotImplementedError("Write the loops of this node without vectors.")


class ScalarPreparation(Preparation):
    def uuid(self):
        raise NotImplementedError("Return another version than that of loops with vectors.")


def scalar_loops():
    raise NotImplementedError("Register the two classes, and the usual ones at the end.")
