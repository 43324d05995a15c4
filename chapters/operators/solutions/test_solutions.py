# SPDX-License-Identifier: BSD-3-Clause
import json

import philox
import pytest
import torch
from any_dimension import any_dimension
from failing_step import failing_step
from fallback_except import fallback
from fewest_kernels import fewest
from first_seed import first_seed
from no_fallback import no_fallback
from on_the_cpu import on_cpu
from parts_of_a_batch import whole
from positions import positions
from reserved import reserved
from rounded_once import rounded_once
from scale_of import scale_of
from steps_apart import steps
from what_fell_back import fell_back
from what_is_shared import shared
from where_it_runs import where
from which_attention import chosen


def test_a_block_that_stays_on_the_device_passes():
    x = torch.ones(4, 4, device="openreg")
    with no_fallback():
        (x @ x + 1).relu().sum().item()


def test_a_block_that_falls_back_says_what_and_how_often():
    x = torch.ones(3, device="openreg")
    quantize = lambda: torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9)  # noqa: E731
    quantize()
    with pytest.raises(RuntimeError, match=r"ran on the CPU: {'aten::fake_quantize_.*': 2}\."):
        with no_fallback():
            quantize()
            quantize()


def test_fake_quantization_stays_on_the_device_with_its_gradient():
    import fake_quantize  # noqa: F401

    x = torch.linspace(-3, 12, 31)
    for scale, zero_point in ((1.0, 0), (0.3, 5)):
        results = []
        for device in ("cpu", "openreg"):
            here = x.clone().to(device).requires_grad_()
            with torch.openreg.fallback("error"):
                y = torch.fake_quantize_per_tensor_affine(here, scale, zero_point, 0, 9)
                y.sum().backward()
            results.append((y.detach().cpu(), here.grad.cpu()))
        torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize(
    "index, said",
    [
        (torch.tensor([1, 10]), "index 10 is out of bounds for dimension 0 with size 10"),
        (
            (slice(None), torch.tensor([-5])),
            "index -5 is out of bounds for dimension 1 with size 4",
        ),
        ((torch.ones(10, 4, dtype=torch.bool), torch.tensor([3])), "dimension 2 with size 2"),
    ],
)
def test_an_index_of_the_host_is_refused_at_once(index, said):
    import checked_index  # noqa: F401

    x = torch.zeros(10, 4, 2, device="openreg")
    with pytest.raises(IndexError, match=said):
        x[index]
    assert x[torch.tensor([-10, 9])].tolist() == x[:2].tolist()  # The device goes on.


NUMBERS = """
import torch
before, side = torch.zeros(1000, device="openreg"), torch.Stream("openreg")
numbers = before + 1
{wait}
with side:
    doubled = numbers * 2
torch.openreg.synchronize()
print(doubled.sum().item())
"""


def test_a_race_is_found_by_trying_orders(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(NUMBERS.format(wait=""))
    assert first_seed(program) is not None
    program.write_text(NUMBERS.format(wait="side.wait_stream(torch.openreg.current_stream())"))
    assert first_seed(program, range(2)) is None


def test_the_numbers_of_a_seed_are_known_in_advance():
    for seed in (11, 2**40 + 3):
        torch.manual_seed(seed)
        assert torch.rand(50, device="openreg").tolist() == philox.rand(seed, 0, 50)
        assert torch.rand(2, 3, device="openreg").flatten().tolist() == philox.rand(seed, 1, 6)


def test_an_exception_from_the_rule_holds_in_backward_too():
    x = torch.randn(3, 3, device="openreg")
    leaf = x.clone().requires_grad_()
    leaf.register_hook(lambda grad: torch.linalg.eig(grad)[1].real)
    with fallback("error", except_=["aten::linalg_eig"]):
        torch.linalg.eig(x)
        with pytest.raises(NotImplementedError, match="linalg_eigvals has no"):
            torch.ops.aten._linalg_eigvals(x)
        (leaf * x).sum().backward(inputs=[leaf])
    with fallback("error"), pytest.raises(NotImplementedError, match="linalg_eig has no"):
        torch.linalg.eig(x)


@pytest.mark.parametrize(
    "x_dim, mask_dim, mask_size",
    [
        (0, None, (4, 5)),
        (1, 0, (3, 5)),
        (None, 1, (5, 3)),
        (2, 0, (3, 4, 1)),
    ],
)
def test_a_batch_of_softmaxes_is_one_launch(x_dim, mask_dim, mask_size):
    import softmax_vmap  # noqa: F401
    from torch_openreg import _C

    softmax, scale = torch.ops.openreg.scale_mask_softmax, 0.5
    x = torch.randn(4, 5) if x_dim is None else torch.randn(3, 4, 5).movedim(0, x_dim)
    x, mask = x.to("openreg"), (torch.rand(mask_size) < 0.6).to("openreg")
    one = lambda t, dim, i: t if dim is None else t.select(dim, i)  # noqa: E731
    expected = [softmax(one(x, x_dim, i), one(mask, mask_dim, i), scale) for i in range(3)]
    _C.start_trace()
    batch = torch.vmap(softmax, (x_dim, mask_dim, None))(x, mask, scale)
    assert _C.stop_trace()["aten::empty.memory_format"] == (0, 1)
    assert torch.equal(batch, torch.stack(expected))


@pytest.mark.parametrize(
    "query, key, mask, options",
    [
        ((3, 4), (5, 4), None, {}),
        ((2, 3, 4), (2, 5, 4), (2, 3, 5), {}),
        ((4, 3, 4), (2, 5, 4), (3, 5), {"enable_gqa": True}),
        ((2, 3, 2, 3, 4), (2, 3, 2, 5, 4), (3, 1, 3, 5), {"scale": 0.3}),
        ((2, 3, 4, 3, 4), (2, 3, 2, 5, 4), None, {"enable_gqa": True, "is_causal": True}),
    ],
)
def test_attention_of_any_dimension_is_fused(query, key, mask, options):
    tensors = [torch.randn(query), torch.randn(key), torch.randn(key)]
    mask = None if mask is None else torch.rand(mask) < 0.9
    attention = torch.nn.functional.scaled_dot_product_attention
    there = [x.to("openreg").requires_grad_() for x in tensors]
    with any_dimension():
        found = attention(*there, None if mask is None else mask.to("openreg"), **options)
    torch.testing.assert_close(found.detach().cpu(), attention(*tensors, mask, **options))
    names, nodes = [], [found.grad_fn]
    while nodes:
        node = nodes.pop()
        names.append(node.name())
        nodes += [following for following, _ in node.next_functions if following]
    assert "ScaledDotProductFusedAttentionOverrideableBackward0" in names


def test_quantized_tensors_are_added_on_the_device():
    import quantized_add  # noqa: F401

    one, other = torch.randn(3, 4), torch.randn(3, 4)
    q = torch.quantize_per_tensor(one.to("openreg"), 0.1, 3, torch.qint8)
    r = torch.quantize_per_tensor(other.to("openreg"), 0.2, -3, torch.qint8)
    with torch.openreg.fallback("error"):
        total = torch.add(q, r, alpha=2)
    assert (total.q_scale(), total.q_zero_point(), total.dtype) == (0.1, 3, torch.qint8)
    expected = torch.quantize_per_tensor(
        q.cpu().dequantize() + 2 * r.cpu().dequantize(), 0.1, 3, torch.qint8
    )
    assert torch.equal(total.cpu(), expected)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_matrices_are_multiplied_on_the_device():
    import sparse_matmul  # noqa: F401

    for seed in range(5):
        torch.manual_seed(seed)
        one, other = torch.randint(-3, 3, (5, 4)).relu(), torch.randint(-3, 3, (4, 6)).relu()
        with torch.openreg.fallback("error"):
            product = one.to("openreg").to_sparse() @ other.to("openreg").to_sparse()
        assert product.is_sparse and product.is_coalesced()
        assert torch.equal(product.to_dense().cpu(), one @ other)


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_the_parts_have_the_statistics_of_the_whole(device):
    parts = [torch.randn(count, 3).add(count).double() for count in (2, 5, 30)]
    means = torch.stack([part.mean(0) for part in parts]).to(device)
    variances = torch.stack([part.var(0, correction=0) for part in parts]).to(device)
    mean, variance = whole(means, variances, torch.tensor([2, 5, 30], device=device))
    together = torch.cat(parts)
    torch.testing.assert_close(mean.cpu(), together.mean(0))
    torch.testing.assert_close(variance.cpu(), together.var(0, correction=0))


def test_only_what_the_call_ran_on_the_cpu_is_told():
    x = torch.diag(torch.tensor([2.0, 3.0])).to("openreg")
    torch.linalg.eigvals(x)
    result, counts = fell_back(lambda x: torch.linalg.eigvals(x) + torch.linalg.eigvals(x), x)
    assert sorted(result.real.tolist()) == [4.0, 6.0]
    assert list(counts.values()) == [2]
    assert fell_back(lambda x: x + 1, x)[1] == {}


@pytest.mark.parametrize(
    "found, expected, apart",
    [
        (1.0, 1.0, 0),
        (1.0, 1.0 + 2**-23, 1),
        (2.0, 2.0 - 2**-22, 2),
        (0.0, -0.0, 0),
        (2**-149, -(2**-149), 2),
        (float("inf"), 3.4028234663852886e38, 1),
    ],
)
def test_steps_are_counted_on_both_sides_of_zero(found, expected, apart):
    found, expected = torch.tensor([found, 5.0]), torch.tensor([expected, 5.0])
    assert steps(found, expected) == steps(expected, found.to("openreg")) == apart


def test_few_kernels_serve_most_calls(tmp_path):
    file = tmp_path / "calls.jsonl"
    lines = [
        ("aten.add.Tensor", 3),
        ("aten.mm.default", 4),
        ("aten.add.Tensor", 2),
        ("aten.abs", 1),
    ]
    file.write_text("".join(json.dumps({"op": o, "count": n, "args": []}) + "\n" for o, n in lines))
    assert fewest(file, 0.5) == ["aten.add.Tensor"]
    assert fewest(file, 0.51) == ["aten.add.Tensor", "aten.mm.default"]
    assert fewest(file, 1) == ["aten.add.Tensor", "aten.mm.default", "aten.abs"]


@pytest.mark.parametrize(
    "arguments, device",
    [
        ([torch.ones(2), 3], "cpu"),
        ([torch.tensor(2.0)], "cpu"),
        ([torch.ones(2, device="openreg"), torch.tensor(2.0), 3], "openreg:0"),
        ([torch.tensor(2.0), torch.tensor(1.0, device="openreg:1")], "openreg:1"),
    ],
)
def test_an_operator_runs_where_its_tensors_are(arguments, device):
    assert where(*arguments) == torch.device(device)
    assert sum(arguments, torch.zeros(())).device == torch.device(device)


@pytest.mark.parametrize(
    "arguments, names",
    [
        ([torch.ones(2, device="openreg:1"), torch.ones(2)], "cpu, openreg:1"),
        (
            [torch.ones(2, device="openreg:1"), torch.ones(2, device="openreg:0")],
            "openreg:0, openreg:1",
        ),
        ([3], "none"),
    ],
)
def test_tensors_of_several_devices_have_no_place(arguments, names):
    with pytest.raises(RuntimeError, match=f"theirs are {names}[.]"):
        where(*arguments)


def test_a_sum_with_a_factor_is_rounded_once():
    torch.manual_seed(0)
    a, b = torch.randn(10_000), torch.randn(10_000)
    alpha = torch.tensor(1 / 3).item()
    expected = rounded_once(a, b, alpha)
    assert expected.dtype == torch.float32
    assert torch.equal(torch.add(a.to("openreg"), b.to("openreg"), alpha=alpha).cpu(), expected)
    assert not torch.equal(a + alpha * b, expected)


def test_positions_are_those_of_the_dense_tensor():
    dense = torch.zeros(3, 4, 5)
    dense[0, 1, 2], dense[2, 0, 4], dense[1, 3, 0] = 1, 2, 3
    x = dense.to("openreg").to_sparse()
    assert positions(x).device == x.device
    assert dense.flatten()[positions(x).cpu()].tolist() == x._values().tolist()
    hybrid = dense.to("openreg").to_sparse(2)
    assert positions(hybrid).tolist() == [1, 7, 8]


@pytest.mark.parametrize(
    "operator, both",
    [
        (torch.ops.aten.add.Tensor, ([], [])),
        (torch.ops.aten.add_.Tensor, (["self"], ["self"])),
        (torch.ops.aten.add.out, (["out"], ["out"])),
        (torch.ops.aten.view.default, (["self"], [])),
        (torch.ops.aten.max.dim_max, (["max", "max_values"], ["max", "max_values"])),
    ],
)
def test_a_schema_tells_what_is_shared_and_written(operator, both):
    assert shared(operator) == both


def test_the_choice_of_attention_has_a_name():
    q = torch.randn(2, 4, 8, 16, device="openreg")
    assert chosen(q, q, q) == "OVERRIDEABLE"
    assert chosen(q, q, q, is_causal=True) == "OVERRIDEABLE"
    assert chosen(q, q, q, dropout_p=0.5, is_causal=True) == "MATH"
    assert chosen(q[0], q[0], q[0]) == "MATH"
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert chosen(q, q, q) == "MATH"


@pytest.mark.parametrize("low, high", [(-3, 5), (1, 5), (-9, -1), (0, 0), (-1e-3, 1e3)])
def test_eight_bits_hold_all_numbers_and_zero(low, high):
    x = torch.linspace(low, high, 1001, device="openreg")
    scale, zero_point = scale_of(x)
    q = torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)
    assert (q.dequantize() - x).abs().max().item() <= 0.501 * scale
    zero = torch.quantize_per_tensor(x * 0, scale, zero_point, torch.quint8).dequantize()
    assert zero.abs().max().item() == 0


def test_offsets_are_counted_for_the_current_device():
    x = torch.empty(1000, device="openreg")
    assert reserved(lambda: x + 1) == 0
    once = reserved(torch.rand_like, x)
    assert once > 0
    assert reserved(lambda: [torch.rand_like(x) for _ in range(3)]) == 3 * once
    with torch.openreg.device(1):
        assert reserved(torch.rand_like, x) == 0


def test_a_call_on_the_cpu_brings_back_what_it_makes_and_writes():
    x, y = torch.tensor([4.0, 9.0], device="openreg:1"), torch.ones(2, device="openreg:1")
    root = on_cpu(torch.ops.aten.sqrt.default, x)
    assert root.device == x.device and root.tolist() == [2, 3]
    view = x[1:]
    assert on_cpu(torch.ops.aten.add_.Tensor, x, y) is x
    assert x.tolist() == [5, 10] and view.tolist() == [10] and y.tolist() == [1, 1]
    out = torch.zeros(2, device="openreg:1")
    copied = torch.ops.aten.copy_.default
    assert on_cpu(copied, out, x) is out and out.tolist() == [5, 10]


@pytest.mark.parametrize(
    "program, number",
    [
        ([lambda x: x + 1, lambda x: x[torch.tensor([0, 9], device=x.device)], torch.sum], 1),
        ([lambda x: x + 1, lambda x: x + torch.ones(5, device=x.device)], 1),
        ([lambda x: x[torch.tensor([9], device=x.device)]], 0),
        ([lambda x: x + 1, torch.sum, lambda x: x.item()], None),
    ],
)
def test_the_step_that_fails_on_the_device_is_found(program, number):
    assert failing_step(program, torch.ones(3, device="openreg")) == number
    assert (torch.ones(1, device="openreg") + 1).item() == 2
