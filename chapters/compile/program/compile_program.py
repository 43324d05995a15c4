# SPDX-License-Identifier: BSD-3-Clause
"""The Python program that Inductor generates around the kernels."""

from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.stream_constants import DEFAULT_STREAM, STREAM_NAME_TEMPLATE
from torch._inductor.virtualized import V


# [compile.program.launch] Every line names its device, so a program needs no guard and changes no current device.
class Launching:
    """What a program and its subgraphs have in common."""

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return Subprogram(subgraph_name, parent_wrapper, partition_signatures)
        return Program()

    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, **rest):
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "openreg":
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **rest)
            return
        self.write_get_raw_stream_header()
        stream = f"get_raw_stream({device.index})"
        self.writeline(self.wrap_kernel_call(kernel_name, [*call_args, stream]))

    # [compile.program.kernel] A kernel is a library of its own, and each library has the same entry.
    def define_launcher(self, name, types, source):
        source = source.replace(f"orError_t {name}(", "orError_t kernel(")
        self.define_kernel(name, f"openreg_kernel({types!r}, r'''\n{source}''')", gpu=False)

    # [compile.program.allocate] An allocation names the index of the device as well, which PyTorch's own line leaves to the guard.
    def make_allocation(
        self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False
    ):
        line = super().make_allocation(
            name, device, dtype, shape, stride, allocation_shape, is_pinned
        )
        return line.replace("device='openreg'", f"device='{device}'")

    # [compile.program.streams] The streams of the program are looked up once, on the stream that it is called on.
    def codegen_cuda_stream_enter(self, stream_idx):
        if not self._streams_found:
            self._streams_found = True
            self.add_import_once(
                "from torch._dynamo.graph_bytecode_inputs import get_external_object_by_index"
            )
            self.writeline(f"{DEFAULT_STREAM} = {V.graph.device_ops.current_stream()}")
            for index, user_object in V.graph.scheduler.stream_idx_to_user_obj_idx.items():
                stream = STREAM_NAME_TEMPLATE.format(stream_idx=index)
                self.writeline(f"{stream} = get_external_object_by_index({user_object})")
        return super().codegen_cuda_stream_enter(stream_idx)

    _streams_found = False


# [compile.program.classes] A subgraph, such as a branch of `torch.cond`, is a function of the same program.
class Program(Launching, PythonWrapperCodegen):
    def write_header(self):
        super().write_header()
        self.imports.writeline("from torch_openreg.compile_kernels import kernel as openreg_kernel")


class Subprogram(Launching, SubgraphPythonWrapperCodegen):
    pass


# [-]
