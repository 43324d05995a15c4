# SPDX-License-Identifier: BSD-3-Clause
"""Compiled kernels are kernels: they run on the device, later, in the order of a stream, and have names."""

import subprocess
import sysconfig
from types import SimpleNamespace

import pytest
import torch
from running import hold
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.utils import run_and_get_code
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils.cpp_extension import include_paths
from torch_openreg import get_include


def code_of(function, *arguments):
    result, programs = run_and_get_code(torch.compile(function), *arguments)
    return result, "\n".join(programs)


def test_a_kernel_has_the_names_of_its_operators_in_a_profile(compiled):
    x = torch.ones(8, device="openreg")
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        compiled(x)
        torch.openreg.synchronize()
    names = [e.name for e in profiler.events() if e.device_type != DeviceType.CPU]
    assert names == ["openreg_fused_add_sin_0_kernel"]


def test_a_call_returns_before_its_kernel_has_run(compiled):
    x, stream = torch.zeros(8, device="openreg"), torch.openreg.current_stream()
    hold(stream)
    result = compiled(x)
    assert not stream.query()
    assert torch.equal(result.cpu(), torch.ones(8))


def test_the_memory_of_a_dropped_result_serves_the_next_call_on_the_stream(compiled):
    x = torch.ones(1 << 16, device="openreg")
    address = compiled(x).data_ptr()
    assert compiled(x).data_ptr() == address


def test_an_index_out_of_range_is_refused_with_the_name_of_the_kernel_and_the_device_goes_on():
    take = torch.compile(lambda x, i: x[i] + 1)
    x = torch.ones(1 << 17, device="openreg")
    take(x, torch.zeros(1 << 17, dtype=torch.long, device="openreg"))
    take(x, torch.full((1 << 17,), 1 << 20, device="openreg"))
    told = "could not run openreg_fused_add_index_0.*out of bounds"
    with pytest.raises(RuntimeError, match=told):
        torch.openreg.synchronize()
    assert (take(x, torch.zeros(1 << 17, dtype=torch.long, device="openreg")) == 2).all()


def test_dividing_integers_by_zero_is_refused():
    divide = torch.compile(lambda x, y: x // y)
    x = torch.arange(8, device="openreg")
    assert torch.equal(divide(x, x + 1).cpu(), torch.arange(8) // (torch.arange(8) + 1))
    divide(x, x)
    with pytest.raises(RuntimeError, match="could not run .*ZeroDivisionError"):
        torch.openreg.synchronize()
    assert torch.equal(divide(x, x + 1).cpu(), torch.arange(8) // (torch.arange(8) + 1))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_a_quotient_that_is_rounded_towards_zero_does_not_end_the_process(dtype):
    divide = torch.compile(lambda x, y: torch.div(x, y, rounding_mode="trunc"), dynamic=True)
    least = torch.iinfo(dtype).min
    x = torch.tensor([least, 7, 100]).to(dtype).repeat(100).to("openreg")
    for divisor in (3, -1, -3):
        y = torch.full((300,), divisor, device="openreg").to(dtype)
        assert torch.equal(divide(x, y).cpu(), torch.div(x, y, rounding_mode="trunc").cpu())
    divide(x, x - x)
    with pytest.raises(RuntimeError, match="could not run .*ZeroDivisionError"):
        torch.openreg.synchronize()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("reduce", [
    lambda x, y: (x + y.t()).sum(-1),
    lambda x, y: (x * y.t()).amax(0),
    lambda x, y: (x + y.t()).softmax(-1),
    lambda x, y: torch.cat([x, y.t()]).log_softmax(-1),
], ids=["sum", "amax", "softmax", "log_softmax"])  # fmt: skip
def test_a_reduction_over_a_transposed_tensor_is_compiled(reduce, dynamic):
    torch._dynamo.reset()
    x = torch.randn(64, 64, device="openreg")
    got = torch.compile(reduce, dynamic=dynamic, fullgraph=True)(x, x + 1)
    torch.testing.assert_close(got.cpu(), reduce(x, x + 1).cpu())


def test_only_loops_that_divide_integers_touch_the_flag_of_the_process():
    x = torch.arange(8, device="openreg")
    _, sums = code_of(lambda x: x + 3, x)
    _, quotients = code_of(lambda x, y: x // y, x, x + 1)
    assert "integer_div_error_flag" not in sums
    assert "one_kernel(openreg::integer_division)" in quotients


def test_large_loops_use_several_threads_and_small_ones_one():
    for elements, parallel in ((16, False), (1 << 20, torch.get_num_threads() > 1)):
        x = torch.ones(elements, device="openreg")
        result, code = code_of(lambda x: x * 3, x)
        assert ("#pragma omp parallel" in code) == parallel
        assert (result == 3).all()


def test_loops_that_may_throw_use_one_thread():
    """An exception that leaves a parallel region would end the process."""
    x = torch.zeros(1 << 20, dtype=torch.long, device="openreg")
    result, code = code_of(lambda x: x[x] * 3, x)
    assert "TORCH_CHECK" in code
    assert "#pragma omp parallel" not in code
    assert (result == 0).all()


@pytest.mark.parametrize("elements", [7, 1 << 17])
def test_all_elements_may_be_added_to_one_place(elements):
    """Inductor cannot write this as a parallel loop, not even for the CPU."""

    def gather(x):
        places = torch.full((x.shape[0],), 2, dtype=torch.long, device=x.device)
        return x.scatter_add(0, places, x), x.index_add(0, places, x)

    x = torch.ones(elements, device="openreg")
    for result in torch.compile(gather)(x):
        assert result[2] == elements + 1 and result.sum() == 2 * elements


@pytest.mark.parametrize("elements", [3, 67, 1000])
@pytest.mark.parametrize("value, dtype", [(5, torch.uint8), (5, torch.int8), (-5, torch.int8)])
def test_bytes_are_reduced_as_in_eager_mode(value, dtype, elements):
    """Inductor's vectors of bytes have lanes that it does not fill, and reduces them too."""

    def reduce(x):
        converted = (x * 0.5).to(dtype)
        extremes = x.amin(), x.amax(), *x.min(0), *x.max(0), converted.amax(), converted.amin()
        return *extremes, (x // value).prod(dtype=dtype), x.sum(dtype=dtype), x.argmin(), x.any()

    x = torch.full((elements,), value, dtype=dtype, device="openreg")
    for found, expected in zip(torch.compile(reduce)(x), reduce(x), strict=True):
        assert found == expected


def test_serial_loops_after_parallel_ones_run_once():
    x = torch.ones(1 << 18, device="openreg")
    places = torch.arange(1 << 18, device="openreg") % 8

    def both(x, places):
        doubled = x * 2
        # Read in another order, so that the two loops are not fused.
        return doubled, torch.zeros(8, device=x.device).index_add(0, places, doubled.flip(0))

    (doubled, sums), _ = code_of(both, x, places)
    assert (doubled == 2).all()
    assert (sums == 1 << 16).all()


def test_a_number_of_the_host_is_read_at_the_launch(compiled):
    scale = torch.compile(lambda x, factor: x * factor)
    x, factor = torch.ones(8, device="openreg"), torch.tensor(2.0)
    result, code = code_of(lambda x, factor: x * factor, x, factor)
    assert "= *in_ptr" in code
    scale(x, factor)
    result = scale(x, factor)
    factor.fill_(5)
    assert (result == 2).all()
    assert (scale(x, factor) == 5).all()


@pytest.mark.parametrize("function", [
    lambda factor, x: factor * x,
    lambda factor, x: factor - x,
    lambda factor, x: (factor + 1).pow(x) + factor,
    lambda factor, x: torch.where(factor > 1, x, factor),
    lambda factor, x: torch.addcmul(x, factor, x),
    lambda factor, x: torch.addcdiv(factor, x, factor),
    lambda factor, x: torch.atan2(factor, x.sum()),
    lambda factor, x: (factor * x).sum() + factor,
])  # fmt: skip
def test_a_number_of_the_host_may_come_first(function):
    compiled = torch.compile(function)
    x, factor = torch.linspace(0.5, 3, 50), torch.tensor(2.0)
    for value in (2, 0.5):
        factor.fill_(value)
        result = compiled(factor, x.to("openreg"))
        torch.testing.assert_close(result.cpu(), function(factor, x))
        assert result.device == torch.device("openreg:0")


@pytest.mark.parametrize("memory", [torch.Tensor.clone, torch.Tensor.pin_memory])
@pytest.mark.parametrize("function", [
    lambda factor, x: factor - x,
    lambda factor, x: torch._foreach_sub([factor], [x])[0],
])  # fmt: skip
def test_a_number_of_the_host_that_comes_first_may_change_after_the_call(function, memory):
    compiled = torch.compile(function)
    x, factor = torch.ones(8, device="openreg"), memory(torch.tensor(3.0))
    compiled(factor, x)
    hold(torch.openreg.current_stream())
    result = compiled(factor, x)
    factor.fill_(100)
    assert (result == 2).all()


@pytest.mark.parametrize("operator", [torch._foreach_mul, torch._foreach_maximum])
def test_a_number_of_the_host_may_come_first_in_a_list(operator):
    def both(first, second):
        return operator(first, second), operator(second, first)

    numbers = [torch.tensor(2.0), torch.tensor(4.0), torch.tensor(5.0)]
    first = numbers[0], numbers[1].to("openreg"), numbers[2]
    second = numbers[1].to("openreg"), numbers[2], numbers[0]
    for found, expected in zip(torch.compile(both)(first, second), both(first, second)):
        assert [(each.item(), each.device) for each in found] == [
            (each.item(), each.device) for each in expected
        ]


def test_a_kernel_has_no_race_with_the_neighbor_of_its_tensor():
    x, neighbor = torch.zeros(64, device="openreg"), torch.zeros(64, device="openreg")
    sine = torch.compile(lambda x: x.sin())
    sine(x)
    stream = torch.Stream("openreg")
    stream.wait_stream(torch.openreg.current_stream())
    with torch.openreg.sanitizer.finding_races() as races:
        with stream:
            sine(x)
        neighbor.zero_()
        assert races() == []
        x.zero_()
        assert [race.second.name for race in races()] == ["zero_"]
    torch.openreg.sanitizer.clear()


def test_a_compiled_optimizer_may_have_a_state_on_the_host():
    steps = []
    for compiles in (lambda step: step, torch.compile):
        parameter = torch.ones(4, device="openreg", requires_grad=True)
        optimizer = torch.optim.NAdam([parameter], lr=0.01)
        parameter.grad = torch.arange(4.0, device="openreg")
        optimizer.step()
        step = compiles(lambda optimizer=optimizer: optimizer.step())
        step(), step()
        steps.append(parameter.detach().cpu())
    torch.testing.assert_close(*steps)


def test_a_kernel_that_reads_an_array_of_the_host_is_refused():
    from torch._inductor.virtualized import V
    from torch_openreg.compile_kernels import on_host

    array = SimpleNamespace(
        get_device=lambda: torch.device("cpu"), get_numel=lambda: 6, get_size=lambda: [2, 3]
    )
    graph = SimpleNamespace(get_buffer=lambda name: array)
    sentence = r"A kernel on openreg reads arg1_1, which is on the host and has the shape \(2, 3\)"
    with V.set_graph_handler(graph), pytest.raises(NotImplementedError, match=sentence):
        on_host("arg1_1")


def test_a_compiled_program_does_not_include_pytorchs_tensors():
    folders = [get_include(), *include_paths(), sysconfig.get_path("include")]
    header = f"{get_include()}/torch_openreg/chapters/compile/kernels/compiled.h"
    command = [get_cpp_compiler(), "-std=c++20", "-M", "-DSTANDALONE_TORCH_HEADER"]
    command += [*(f"-I{folder}" for folder in folders), header]
    included = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "cpp_prefix.h" in included and "TensorImpl.h" not in included
