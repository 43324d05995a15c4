# SPDX-License-Identifier: BSD-3-Clause
"""The tests of the exercises."""

import torch
import torch.nn.functional as F
from asked import asked
from called_operators import operators
from count_kernels import kernels
from devices_of import devices
from fast_gelu import fast_gelu
from fused_relu import FusedRelu
from replayed import replayed
from scalar_loops import scalar_loops
from torch._inductor import config
from torch._inductor.utils import run_and_get_code


def test_our_gelu_is_close_and_needs_no_error_function():
    x = torch.linspace(-4, 4, 64, device="openreg")
    found, (code,) = run_and_get_code(torch.compile(F.gelu, backend=fast_gelu), x)
    assert "erf(" not in code
    assert 0 < (found - F.gelu(x)).abs().max() < 0.021


def test_our_pass_makes_one_operator_of_two():
    layer = torch.nn.Linear(8, 8, device="openreg").requires_grad_(False)
    x = torch.randn(4, 8, device="openreg")
    with config.patch(post_grad_custom_post_pass=FusedRelu()):
        found, (code,) = run_and_get_code(torch.compile(lambda x: F.relu(layer(x))), x)
    assert "_addmm_activation" in code
    assert "openreg_fused" not in code
    torch.testing.assert_close(found, F.relu(layer(x)))


def test_our_loops_have_no_vectors_and_the_same_results():
    x = torch.randn(1000, device="openreg")
    with scalar_loops():
        found, (code,) = run_and_get_code(torch.compile(lambda x: x.sin() * 2), x)
    assert "Vectorized" not in code
    torch.testing.assert_close(found, x.sin() * 2)
    _, (code,) = run_and_get_code(torch.compile(lambda x: x.sin() * 3), x)
    assert "Vectorized" in code


def test_fused_operators_are_one_kernel_and_a_product_divides_them():
    x = torch.randn(64, 64, device="openreg")
    assert kernels(lambda x: (x.sin() * 2 + 1).relu(), x) == 1
    assert kernels(lambda x: ((x.sin() @ x).exp() @ x).cos(), x) == 3
    assert kernels(lambda x: x @ x, x) == 0


def test_the_third_call_is_a_replay_and_another_size_begins_anew():
    function = torch.compile(lambda x: (x @ x).cos() @ x, mode="reduce-overhead", dynamic=False)
    small, large = (torch.ones(size, size, device="openreg") for size in (8, 16))
    calls = [replayed(function, x) for x in (small, small, small, small, large)]
    assert [was_replay for _, was_replay in calls] == [False, False, True, True, False]


def test_a_program_allocates_on_the_devices_of_its_inputs():
    one = torch.ones(8, device="openreg:1")
    assert devices(lambda x: x.sin(), one) == {torch.device("openreg:1")}
    both = {torch.device("openreg:0"), torch.device("openreg:1")}
    zero = torch.ones(8, device="openreg:0")
    assert devices(lambda x, y: (x.sin(), y.cos()), zero, one) == both


def test_a_program_needs_two_of_our_strings():
    x = torch.ones(8, device="openreg")
    assert asked(lambda x: x.sin(), x) == {"import_get_raw_stream_as"}
    side = torch.Stream("openreg:0")

    def on_two_streams(x):
        with side:
            y = x.sin()
        return y + x

    assert asked(on_two_streams, x) == {"import_get_raw_stream_as", "current_stream"}
    assert asked(lambda x: x.cos(), x) == {"import_get_raw_stream_as"}


def test_loops_call_no_operator_and_products_do():
    x = torch.rand(8, 8, device="openreg")
    assert operators(lambda x: x.sin() + 1, x) == []
    assert operators(lambda x: (x @ x).sin() @ x, x) == ["aten::mm.out", "aten::mm.out"]
    assert operators(lambda x: torch.sort(x)[0], x) == ["aten::sort.stable"]
