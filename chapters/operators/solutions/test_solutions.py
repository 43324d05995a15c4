# SPDX-License-Identifier: BSD-3-Clause
import philox
import pytest
import torch
from any_dimension import any_dimension
from fallback_except import fallback
from first_seed import first_seed
from no_fallback import no_fallback


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
