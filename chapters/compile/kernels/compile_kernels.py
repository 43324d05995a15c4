# SPDX-License-Identifier: BSD-3-Clause
"""Inductor's C++ loops, launched on the current stream of the device."""

import functools
import hashlib
import re
import textwrap
from pathlib import Path

import torch
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile, get_compile_threads
from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture
from torch._inductor.codegen.cpp import (
    CppKernel,
    CppKernelProxy,
    CppScheduling,
    CppTile2DKernel,
    CppVecKernel,
    KernelGroup,
)
from torch._inductor.loop_body import MemoryUsageType
from torch._inductor.utils import Placeholder, get_fused_kernel_name
from torch._inductor.virtualized import V

from ._extension import get_include, get_library_dir


# [compile.kernels.group] The loops become one function, and the kernel is a second one that launches it.
class LaunchedGroup(KernelGroup):
    """Several loops that Inductor puts into one kernel, because nothing else comes between them."""

    def codegen_group(self, name=None):
        loops = super().codegen_group(f"{Placeholder.DESCRIPTIVE_NAME}_loops")
        # PyTorch's header stays the first, because Inductor has it compiled beforehand.
        loops = re.sub(
            r"(?=^extern)", HEADER, without_unused_flag(loops), count=1, flags=re.MULTILINE
        )
        return loops and f"{loops}\n{self._launcher()}"

    # [compile.kernels.group.launcher] The launch names the pointers once more, because a closure hides them.
    def _launcher(self):
        definitions, _, _ = self.args.cpp_argdefs()
        names = [definition.split()[-1] for definition in definitions]
        of_host = {inner for outer, inner in self.args.input_buffers.items() if on_host(outer)}
        captures, arguments, pointers = [], [], []
        for name, definition in zip(names, definitions):
            value = f"openreg::onDevice({name})" if "*" in definition else name
            captures.append(f"{name} = " + (f"*{name}" if name in of_host else value))
            arguments.append(f"&{name}" if name in of_host else name)
            if "*" in definition and name not in of_host:
                pointers.append(f", {name}")
        return LAUNCHER.format(
            kernel=Placeholder.KERNEL_NAME,
            name=Placeholder.DESCRIPTIVE_NAME,
            parameters=", ".join([*definitions, "uintptr_t stream"]),
            captures=", ".join(captures),
            arguments=", ".join(arguments),
            pointers="".join(pointers),
            version=version(),
        )


HEADER = '#include "torch_openreg/chapters/compile/kernels/compiled.h"\n'
LAUNCHER = """
// {version}
extern "C" orError_t {kernel}({parameters}) {{
    return openreg::launchCompiled(stream, "{name}", [{captures}] {{
        {name}_loops({arguments});
    }}{pointers});
}}
"""


# [compile.kernels.host] A number on the host is read at the launch, like the 2 of `x + 2` in eager mode.
def on_host(buffer):
    """Whether a kernel gets this buffer by value.

    Raises:
        NotImplementedError: the buffer is on the host and has more than one element.
    """
    found = V.graph.get_buffer(buffer)
    if found.get_device().type != "cpu":
        return False
    if found.get_numel() != 1:
        raise NotImplementedError(
            f"A kernel on openreg reads {buffer}, which is on the host and has the shape "
            f"{tuple(found.get_size())}; move it with .to()."
        )
    return True


# [compile.kernels.division.flag] Only loops that divide integers use PyTorch's flag, one kernel at a time.
FLAG = re.compile(r"^ *inductor_cpu_integer_div_error_flag = .*;\n", re.MULTILINE)


def without_unused_flag(loops):
    lock = "std::lock_guard<std::mutex> one_kernel(openreg::integer_division);\n"
    if re.search(r"\b(floor_divide_integral|mod|remainder_integral|quotient)\(", loops):
        return FLAG.sub(lambda line: (lock if "&" in line[0] else "") + line[0], loops)
    return FLAG.sub("", loops)


# [compile.kernels.division.truncated] For a quotient that is rounded towards zero, Inductor writes `a / b`.
def with_quotients(kernel, *parents):
    """The same class of kernels, whose quotients of integers do not end the process.

    `parents` are the classes that took the places of the kernel's own parents.
    """

    class Overrides(kernel.overrides):
        def __init__(self):
            divide = self.truncdiv
            self.truncdiv = lambda a, b: "openreg::quotient({}, {})".format(
                *divide(a, b).split(" / ", 1)
            )

    return type(kernel.__name__, (kernel, *parents), {"overrides": Overrides})


class Loops(CppKernelProxy):
    """Chooses between a scalar loop, one of vectors, and one of tiles."""

    kernel_cls = with_quotients(CppKernel)
    vec_kernel_cls = with_quotients(CppVecKernel, kernel_cls)
    tile2d_kernel_cls = with_quotients(CppTile2DKernel, vec_kernel_cls)


# [compile.kernels.scheduling] Inductor fuses and orders the loops for the CPU, and only the kernels around them are ours.
class Scheduling(CppScheduling):
    """How Inductor turns fused operators into kernels of the device."""

    kernel_proxy_cls = Loops

    def reset_kernel_group(self):
        self.kernel_group = LaunchedGroup()

    def codegen_node(self, node):
        settings = threading(node) | vectorizing(node)
        if settings["cpp.threads"] == 1:
            # Else all threads of an open parallel region would run these loops.
            self.kernel_group.ws.close()
        # Asked for another device than the CPU, Inductor writes for Triton.
        with V.graph.set_current_device(torch.device("cpu")), config.patch(settings):
            super().codegen_node(node)

    def ready_to_flush(self):
        # The next operator may be on another stream.
        return super().ready_to_flush() or self.scheduler._has_multi_stream_nodes()

    def define_kernel(self, src_code, nodes, kernel_args=None):
        wrapper = V.graph.wrapper_code
        if src_code not in wrapper.src_to_kernel:
            fused = get_fused_kernel_name(nodes, config.cpp.descriptive_names)
            name = f"openreg_{fused}_{wrapper.next_kernel_suffix()}"
            source = src_code.replace(str(Placeholder.KERNEL_NAME), name)
            source = source.replace(str(Placeholder.DESCRIPTIVE_NAME), name)
            _, _, types = (kernel_args or self.kernel_group.args).cpp_argdefs()
            wrapper.define_launcher(name, types, source)
            wrapper.src_to_kernel[src_code] = name
        return wrapper.src_to_kernel[src_code]


# [compile.kernels.threads] Loops share their work between threads from the size on from which PyTorch's own kernels do.
GRAIN = 2**15  # at::internal::GRAIN_SIZE


def threading(node):
    """The settings of Inductor for the loops of `node`."""
    # An exception must not leave a parallel region. And Inductor cannot write a parallel loop that
    # adds to one place.
    bodies = [part._body for part in node.get_nodes()]
    throws = any(body.indirect_vars or body.has_op("device_assert_async") for body in bodies)
    stores = [store for body in bodies for store in body.memory_usage[MemoryUsageType.STORE]]
    alone = throws or any(store.mode == "atomic_add" for store in stores)
    return {"cpp.threads": 1 if alone else config.cpp.threads, "cpp.min_chunk_size": GRAIN}


# [compile.kernels.vectors] Inductor fills a part of each vector of bytes, and reduces all of it.
BYTES = torch.int8, torch.uint8


def vectorizing(node):
    """The settings of Inductor with which the loops of `node` have no vectors, if they must not."""
    reduced = [part.node.data.src_dtype for part in node.get_nodes() if part.is_reduction()]
    return {"cpp.simdlen": 0} if any(dtype in BYTES for dtype in reduced) else {}


# [compile.kernels.build] Inductor's cache compiles a kernel and wraps it for Python, and errors become PyTorch's exceptions.
class KernelCache(CppPythonBindingsCodeCache):
    call_entry_function = "return launched(kernel({}));"
    extra_parse_arg = textwrap.dedent(
        """
        static PyObject* launched(orError_t error) {{
            if (error == orSuccess) Py_RETURN_NONE;
            PyObject* ours = PyImport_ImportModule("torch_openreg._C");
            PyObject* none = ours ? PyObject_CallMethod(ours, "check", "i", int(error)) : nullptr;
            Py_XDECREF(ours);
            return none;
        }}
        """
    )


def kernel(types, source):
    """The function that launches a kernel; it takes arguments of these types, and a stream."""
    libraries = f"-L{get_library_dir()}", "-ltorch_openreg", "-lopenreg"
    arguments = [*types, "uintptr_t"], source
    flags = f"-I{get_include()}", *libraries
    if get_compile_threads() <= 1:
        return KernelCache.load_pybinding(*arguments, extra_flags=flags)
    return LambdaFuture(
        KernelCache.load_pybinding_async(
            *arguments, extra_flags=flags, submit_fn=AsyncCompile.submit
        )
    )


# [compile.kernels.version] Inductor's cache knows the text of a kernel and not that of our headers, so the text names their version.
@functools.cache
def version():
    """Changes whenever a file of the package does that a compiled program depends on."""
    digest = hashlib.sha256(torch.__version__.encode())
    for file in (*headers(), *modules()):
        digest.update(file.read_bytes())
    return f"torch_openreg {digest.hexdigest()[:16]}"


def headers():
    folder = Path(get_include(), "torch_openreg")
    folders = "chapters/compile/*", "common", "common/math/launch", "common/openreg/interface"
    return [file for each in folders for file in sorted(folder.glob(f"{each}/*.h"))]


def modules():
    return sorted(Path(__file__).parent.glob("compile_*.py"))


# [-]
