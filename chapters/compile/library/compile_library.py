# SPDX-License-Identifier: BSD-3-Clause
"""The C++ program that Inductor generates around the kernels, for `cpp_wrapper` and for AOTInductor."""

import dataclasses
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import sympy
import torch
from torch._inductor import config, ir
from torch._inductor.codegen.cpp_utils import cexpr
from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
from torch._inductor.codegen.wrapper import WrapperLine
from torch._inductor.virtualized import V

from ._extension import get_include, get_library_dir
from .compile_kernels import HEADER


# [compile.library.text] A package has no include path of ours, so a program contains the text of the headers that it needs.
@functools.cache
def text_of(header, folder=None):
    """The text of a header and of those of ours that it includes, each with a guard."""
    candidates = [Path(folder or "", header), Path(get_include(), header)]
    (file, *_) = (file for file in candidates if file.is_file())
    text = file.read_text().replace("#pragma once\n", "")
    text = re.sub(
        r'^#include "(.+)"$',
        lambda include: text_of(include[1], file.parent),
        text,
        flags=re.MULTILINE,
    )
    # Two folders may have a header of one name.
    guard = re.sub(r"\W", "_", f"{file.parent.name}/{file.name}").upper()
    return f"#ifndef OPENREG_TEXT_{guard}\n#define OPENREG_TEXT_{guard}\n{text}\n#endif\n"


PROGRAM = "torch_openreg/chapters/compile/library/program.h"


# [compile.library.line] An operator is called where the program stands when its memory is planned, so the call is a line of its own.
@dataclasses.dataclass
class OperatorLine(WrapperLine):
    """A call of an operator that is not compiled."""

    wrapper: "CppProgram"
    operator: torch._ops.OpOverload
    arguments: Callable
    results: list

    def codegen(self, code):
        names = [name for name in self.results if name]
        for name in names:
            code.writeline(f"AtenTensorHandle {name}_handle;")
        schema = self.operator._schema
        arguments = [
            self.wrapper.value(given, wanted.real_type)
            for given, wanted in zip(self.arguments(), schema.arguments)
        ]
        results = [f"&{name}_handle" if name else "nullptr" for name in self.results]
        code.writeline(
            f'openreg::callOperator("{schema.name}", "{schema.overload_name}", '
            f"{{{', '.join(arguments)}}}, {{{', '.join(results)}}});"
        )
        for name in names:
            code.writeline(f"RAIIAtenTensorHandle {name}({name}_handle);")


# [compile.library.line.nodes] A node lists its buffers in a tree, and its arguments by position or by name.
def names_of(outputs):
    """The buffers that an operator fills, in the order of its results; None for what is no tensor."""
    names = []
    for output in outputs:
        if isinstance(output, (list, tuple)):
            names += names_of(output)
        elif not isinstance(output, ir.MutationOutput):
            names.append(output.get_name() if isinstance(output, ir.IRNode) else None)
    return names


def arguments_of(node, positional, kwargs):
    """What `node` passes to its operator, in the order of the schema."""
    positional = node.fill_non_provided_args(positional, kwargs)
    names = [argument.name for argument in node.op_overload._schema.arguments]
    named = names[len(positional) :]
    return [*positional, *(node.get_kwargs_value(name, **kwargs) for name in named)]


# [compile.library.program] Inductor's C++ program for the CPU launches kernels and calls operators; the rest of it is not ours.
class CppProgram(CppWrapperCpu):
    """What Inductor asks for with `cpp_wrapper`, and for AOTInductor."""

    def __init__(self):
        if V.graph.aot_mode:
            self.device = "openreg"
        super().__init__()
        self.external_kernel_libs = [f"-L{get_library_dir()}", "-ltorch_openreg", "-lopenreg"]
        self._kernels_written = False

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        return CppProgram()

    @staticmethod
    def get_device_include_path_jit(device):
        if device != "openreg":
            return CppWrapperCpu.get_device_include_path_jit(device)
        return "#include <torch/csrc/inductor/cpp_wrapper/common.h>\n" + text_of(PROGRAM)

    @staticmethod
    def get_device_include_path_aot(device):
        if device != "openreg":
            return CppWrapperCpu.get_device_include_path_aot(device)
        return "#include <torch/csrc/inductor/aoti_include/common.h>\n" + text_of(PROGRAM)

    def codegen_device(self, device):
        if device.type != "openreg":
            return super().codegen_device(device)
        self.used_cached_devices.add("privateuse1")
        return f"cached_torch_device_type_privateuse1, {device.index or 0}"

    # [compile.library.program.kernel] A kernel is declared in the program and defined in a second file, which is optimized more.
    def define_launcher(self, name, types, source):
        text = text_of(re.search('"(.*)"', HEADER)[1]) if not self._kernels_written else ""
        self._kernels_written = True
        source = source.replace(HEADER, text)
        start = source.rindex('extern "C" orError_t')
        declaration = source[start : source.index(")", start) + 1]
        self.define_kernel(name, source, gpu=False, cpp_definition=f"{declaration};\n")

    def _generate_kernel_call_helper(
        self, kernel_name, call_args, *, device=None, arg_types=None, **rest
    ):
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "openreg":
            super()._generate_kernel_call_helper(
                kernel_name, call_args, device=device, arg_types=arg_types, **rest
            )
            return
        arguments = [
            f"({kind})({given}.data_ptr())" if "*" in kind else str(given)
            for given, kind in zip(call_args, arg_types)
        ]
        index = self.codegen_device_idx(device, str(device.index))
        arguments.append(f"openreg::currentStreamHandle({index})")
        self.writeline(f"openreg::check({kernel_name}({', '.join(arguments)}));")

    # [compile.library.program.operators] Inductor has four kinds of operators that are not compiled, and each becomes the same line.
    def generate_fallback_kernel(self, node):
        positional, kwargs = node.unflatten_args(node.inputs, node.constant_args)
        # Some releases make the one result of an operator a buffer of its own, and others do not.
        outputs = node.outputs or ([node] if isinstance(node.layout, ir.Layout) else [])
        if not self._writes_call(node, positional, kwargs, outputs):
            super().generate_fallback_kernel(node)

    def generate_extern_kernel_alloc(self, node):
        positional = [*node.inputs, *node.constant_args]
        if not self._writes_call(node, positional, node.kwargs, node.outputs or [node]):
            super().generate_extern_kernel_alloc(node)

    def generate_extern_kernel_out(self, node):
        positional = [*node.inputs, *node.constant_args]
        kwargs = dict(node.kwargs, out=node.output_view or node)
        if not self._writes_call(node, positional, kwargs, []):
            super().generate_extern_kernel_out(node)

    def generate_scatter_fallback(self, node):
        (x, index, *source), (dim, *number) = node.inputs, node.constant_args
        positional = [x, dim, index, *source, *number]
        if not self._writes_call(node, positional, node.kwargs, []):
            super().generate_scatter_fallback(node)

    def _writes_call(self, node, positional, kwargs, outputs):
        device, operator = node.get_device(), node.op_overload
        ours = device and device.type == "openreg" and isinstance(operator, torch._ops.OpOverload)
        if ours:
            node.codegen_comment(self)
            arguments = functools.partial(arguments_of, node, list(positional), kwargs)
            self.writeline(OperatorLine(self, operator, arguments, names_of(outputs)))
        return ours

    # [compile.library.program.custom] An operator outside of PyTorch's list is called in the same way.
    def generate_fallback_kernel_with_runtime_lookup(
        self, buf_name, python_kernel_name, get_args, op_overload, raw_args, outputs
    ):
        if V.graph.aot_mode:
            V.extern_kernel_nodes.pop()
        self.writeline(OperatorLine(self, op_overload, lambda: raw_args, names_of(outputs)))

    # [compile.library.program.value] An argument is written as one of the kinds that the library knows.
    def value(self, given, kind):
        if given is None:
            return "{}"
        if isinstance(kind, torch.OptionalType):
            return self.value(given, kind.getElementType())
        if isinstance(kind, torch.ListType):
            values = [self.value(each, kind.getElementType()) for each in given]
            return f"openreg::Values{{{', '.join(values)}}}"
        if isinstance(given, ir.IRNode):
            return f"openreg::tensor({given.codegen_reference()})"
        if isinstance(given, torch.device):
            kind, index = self.codegen_device(given).split(", ")
            index = self.codegen_device_idx(given, index) if given.type == "openreg" else index
            return f"openreg::DeviceValue{{{kind}, {index}}}"
        for write, type_ in (
            (self.codegen_dtype, torch.dtype),
            (self.codegen_layout, torch.layout),
            (self.codegen_memory_format, torch.memory_format),
        ):
            if isinstance(given, type_):
                return f"int64_t({write(given)})"
        return self.number(given)

    def number(self, given):
        if isinstance(given, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            given = given.node.expr
        if isinstance(given, bool):
            return "true" if given else "false"
        if isinstance(given, str):
            return json.dumps(given)
        if isinstance(given, complex):
            return f"std::complex<double>({self.number(given.real)}, {self.number(given.imag)})"
        if isinstance(given, float):
            return f"double({self.generate_float_value(given)})"
        is_real = isinstance(given, sympy.Expr) and not given.is_integer
        return f"{'double' if is_real else 'int64_t'}({cexpr(sympy.sympify(given))})"

    # [compile.library.program.refusals] What a program in C++ cannot do is an error when it is compiled.
    def codegen_cuda_stream_enter(self, stream_idx):
        raise NotImplementedError(
            "A program in C++ for openreg runs on the stream that it is called on; to choose streams "
            "inside it, set torch._inductor.config.cpp_wrapper to False."
        )

    def codegen_model_constructor(self):
        settings = config.aot_inductor
        inside = (
            settings.package_constants_in_so
            or settings.package_constants_on_disk_format == "binary_blob"
        )
        ours = [
            name for name, tensor in V.graph.constants.items() if tensor.device.type == "openreg"
        ]
        if inside and ours:
            raise NotImplementedError(
                "AOTInductor cannot put constants on openreg into the library (this program has "
                f"{len(ours)}), which would load them into the memory of the host: pass "
                "inductor_configs={'aot_inductor.package_constants_in_so': False} to "
                "aoti_compile_and_package, and the constants to the model with load_constants(..., user_managed=True)."
            )
        super().codegen_model_constructor()


# [-]
