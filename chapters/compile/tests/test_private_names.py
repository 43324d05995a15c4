# SPDX-License-Identifier: BSD-3-Clause
"""What this chapter overrides, calls and reads of PyTorch's compiler, which promises none of it to backends.

It is as in PyTorch 2.13. With another release, a test that fails says what to look at.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch

# Functions that we override or call, and their parameters.
FUNCTIONS = {
    "torch._dynamo.device_interface:DeviceInterface._set_stream_by_id": "stream_id device_index device_type",
    "torch._dynamo.device_interface:DeviceInterface.get_raw_stream": "device_idx",
    "torch._dynamo.device_interface:register_interface_for_device": "device device_interface",
    "torch._inductor.async_compile:AsyncCompile.submit": "cls task",
    "torch._inductor.async_compile:get_compile_threads": "",
    "torch._inductor.codecache:CppPythonBindingsCodeCache.load_pybinding": "cls args kwargs",
    "torch._inductor.codecache:CppPythonBindingsCodeCache.load_pybinding_async": "cls argtypes main_code device_type needs_vec_isa kernel_needs_vec_isa "
    "num_outputs submit_fn extra_flags kernel_code",
    "torch._inductor.codecache:LambdaFuture.__init__": "self result_fn future",
    "torch._inductor.codegen.common:DeviceOpOverrides.cpp_kernel_type": "self",
    "torch._inductor.codegen.common:KernelArgs.cpp_argdefs": "self dtype_to_cpp_type",
    "torch._inductor.codegen.common:init_backend_registration": "",
    "torch._inductor.codegen.common:register_backend_for_device": "device device_scheduling device_wrapper_codegen "
    "device_cpp_wrapper_codegen device_fx_wrapper_codegen device_custom_pass "
    "device_custom_config",
    "torch._inductor.codegen.common:register_device_op_overrides": "device device_op_overrides",
    "torch._inductor.codegen.cpp:CppScheduling.codegen_node": "self node",
    "torch._inductor.codegen.cpp:CppScheduling.define_kernel": "self src_code nodes kernel_args",
    "torch._inductor.codegen.cpp:CppScheduling.ready_to_flush": "self",
    "torch._inductor.codegen.cpp:CppScheduling.reset_kernel_group": "self",
    "torch._inductor.codegen.cpp:KernelGroup.codegen_group": "self name",
    "torch._inductor.codegen.cpp:WorkSharing.close": "self",
    "torch._inductor.codegen.cpp_utils:cexpr": "self expr simplify p",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.__init__": "self",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu._generate_kernel_call_helper": "self kernel_name call_args device triton arg_types raw_keys raw_args triton_meta inductor_meta graph_name original_fxnode_name current_stream_idx",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_device": "self device",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_device_idx": "self device device_id",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_dtype": "self dtype",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_layout": "self layout",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_memory_format": "self memory_format",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_model_constructor": "self",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.create": "is_subgraph subgraph_name parent_wrapper partition_signatures",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.define_kernel": "self kernel_name kernel_body metadata gpu cpp_definition",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.generate_extern_kernel_alloc": "self node",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.generate_extern_kernel_out": "self node",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.generate_fallback_kernel": "self node",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.generate_fallback_kernel_with_runtime_lookup": "self buf_name python_kernel_name get_args op_overload raw_args outputs",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.generate_float_value": "self val",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.generate_scatter_fallback": "self node",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.get_device_include_path_aot": "device",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.get_device_include_path_jit": "device",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen._generate_kernel_call_helper": "self kernel_name call_args device triton arg_types raw_keys raw_args "
    "triton_meta inductor_meta graph_name original_fxnode_name "
    "current_stream_idx",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.codegen_cuda_stream_enter": "self stream_idx",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.create": "is_subgraph subgraph_name parent_wrapper partition_signatures",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.define_kernel": "self kernel_name kernel_body metadata gpu cpp_definition",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.make_allocation": "self name device dtype shape stride allocation_shape is_pinned",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.next_kernel_suffix": "self",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.wrap_kernel_call": "self name call_args",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.write_get_raw_stream_header": "self",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.write_header": "self",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.generate_end": "self result",
    "torch._inductor.cudagraph_utils:CUDAGraphPolicy.wrap_output": "self output_code",
    "torch._inductor.cudagraph_utils:log_cudagraph_skip_and_bump_counter": "msg",
    "torch._inductor.graph:GraphLowering.get_buffer": "self buffer_name",
    "torch._inductor.graph:GraphLowering.set_current_device": "self device",
    "torch._inductor.ir:ExternKernel.codegen_comment": "self wrapper kernel_name",
    "torch._inductor.ir:ExternKernel.fill_non_provided_args": "self args kwargs",
    "torch._inductor.ir:ExternKernel.get_kwargs_value": "self arg_name kwargs",
    "torch._inductor.loop_body:LoopBody.has_op": "self name",
    "torch._inductor.loop_body:MemoryEntry": "index_name buffer_name mode",
    "torch._inductor.scheduler:Scheduler._has_multi_stream_nodes": "self",
    "torch._inductor.utils:get_first_incompatible_cudagraph_node": "gm",
    "torch._inductor.utils:get_fused_kernel_name": "node_schedule descriptive_names",
    "torch:_disable_dynamo": "fn recursive",
}
# Functions that we only call. Another release may add parameters at their end.
CALLED = {
    "torch._inductor.lowering:make_pointwise": "fn",
    "torch._inductor.lowering:promote_constants": "inputs override_return_dtype type_promotion_kind",
    "torch._inductor.lowering:register_lowering": "aten_fn broadcast type_promotion_kind",
}
# Other values that we read or set.
VALUES = {
    "torch._inductor.codecache:CppPythonBindingsCodeCache.call_entry_function": "kernel({}); Py_RETURN_NONE;",
    "torch._inductor.codecache:CppPythonBindingsCodeCache.entry_function": "kernel",
    "torch._inductor.codecache:CppPythonBindingsCodeCache.extra_parse_arg": "",
    "torch._inductor.config:aot_inductor.package_constants_in_so": True,
    "torch._inductor.config:aot_inductor.package_constants_on_disk_format": None,
    "torch._inductor.config:cpp.descriptive_names": "original_aten",
    "torch._inductor.config:cpp.min_chunk_size": 512,
    "torch._inductor.config:cpp.simdlen": None,
    "torch._inductor.config:cpp.threads": -1,
    "torch._inductor.config:triton.cudagraphs": False,
    "torch._inductor.stream_constants:DEFAULT_STREAM": "default_stream",
    "torch._inductor.stream_constants:STREAM_NAME_TEMPLATE": "stream{stream_idx:d}",
    "torch._inductor.utils:Placeholder.DESCRIPTIVE_NAME.value": "DESCRIPTIVE_NAME",
    "torch._inductor.utils:Placeholder.KERNEL_NAME.value": "KERNEL_NAME",
}


def found(name):
    module, path = name.split(":")
    value = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


def parameters(name):
    function = inspect.unwrap(found(name))
    function = getattr(function, "__func__", function)
    return " ".join(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_parameters_that_it_has_in_2_13(name):
    assert parameters(name) == FUNCTIONS[name], f"PyTorch {torch.__version__}"


@pytest.mark.parametrize("name", CALLED)
def test_a_function_begins_with_the_parameters_that_it_has_in_2_13(name):
    assert f"{parameters(name)} ".startswith(f"{CALLED[name]} "), f"PyTorch {torch.__version__}"


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_what_it_is_in_2_13(name):
    assert found(name) == VALUES[name], f"PyTorch {torch.__version__}"


@pytest.mark.parametrize("setting", [
    "aot_inductor.precompile_headers", "loop_index_inversion_in_fusion",
    "loop_ordering_after_fusion", "loop_reindexing_after_fusion",
])  # fmt: skip
def test_a_setting_that_we_switch_off_still_exists(setting):
    assert isinstance(found(f"torch._inductor.config:{setting}"), bool)


def test_the_flag_for_divisions_still_has_its_name():
    """And with it the functions that set it, which decide whether a kernel needs the lock."""
    header = Path(torch.__file__).parent / "include/torch/csrc/inductor/cpp_prefix.h"
    text = header.read_text()
    assert "inline std::atomic<int>* inductor_cpu_integer_div_error_flag" in text
    functions = re.findall(
        r"^inline [^;{]*?\b(\w+)\([^;{]*\) \{((?:\n(?!\}).*)*)", text, re.MULTILINE
    )
    noting = {name for name, body in functions if "inductor_cpu_note_integer_div_by_zero()" in body}
    assert noting == {"floor_divide_integral", "mod", "remainder_integral"}
