# SPDX-License-Identifier: BSD-3-Clause
"""A code generator whose loops handle one element at a time, to see what vectors gain."""

import contextlib

from torch._inductor import config
from torch._inductor.codegen.common import device_codegens, register_backend_for_device
from torch_openreg.compile_kernels import Scheduling
from torch_openreg.compile_program import Program
from torch_openreg.compile_register import Preparation


class ScalarScheduling(Scheduling):
    def codegen_node(self, node):
        with config.patch({"cpp.simdlen": 1}):
            super().codegen_node(node)


class ScalarPreparation(Preparation):
    def uuid(self):
        return f"scalar {super().uuid()}"


@contextlib.contextmanager
def scalar_loops():
    """What is compiled inside has loops without vectors."""
    before = device_codegens["openreg"]
    register_backend_for_device(
        "openreg", ScalarScheduling, Program, device_custom_pass=ScalarPreparation()
    )
    try:
        yield
    finally:
        register_backend_for_device(
            "openreg",
            before.scheduling,
            before.wrapper_codegen,
            before.cpp_wrapper_codegen,
            device_custom_pass=Preparation(),
        )
