# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors on the device, against the CPU: values, indices, flags and gradients."""

import copy
from math import inf

import pytest
import torch
from running import run

COMPRESSED = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]
each_layout = pytest.mark.parametrize("layout", [torch.sparse_coo, *COMPRESSED], ids=str)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.fixture(autouse=True)
def on_the_device():
    """Nothing falls back, and there are few entries and many, some of them twice."""
    torch.manual_seed(0)
    with torch.openreg.fallback("error"):
        yield


def matrix(rows=4, columns=6, dtype=torch.float64):
    return torch.randint(-3, 4, (rows, columns)).to(dtype).relu()


def repeated(dtype=torch.float64, dense=()):
    """With indices that come twice, in no order."""
    indices = torch.tensor([[2, 0, 2, 1, 2], [1, 3, 1, 0, 1]])
    values = torch.randint(-9, 9, (5, *dense)).to(dtype)
    return torch.sparse_coo_tensor(indices, values, (4, 6, *dense), check_invariants=False)


def laid_out(dense, layout):
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


def parts(x):
    if x.layout == torch.sparse_coo:
        return x._indices(), x._values()
    if x.layout in (torch.sparse_csr, torch.sparse_bsr):
        return x.crow_indices(), x.col_indices(), x.values()
    return x.ccol_indices(), x.row_indices(), x.values()


def assert_same(there, here):
    assert there.device.type == "openreg" and there.layout == here.layout
    assert (there.dtype, there.shape) == (here.dtype, here.shape)
    if here.layout == torch.strided:
        torch.testing.assert_close(there.cpu(), here)
        return
    assert there.is_coalesced() == here.is_coalesced() if here.is_sparse else True
    assert (there.sparse_dim(), there.dense_dim()) == (here.sparse_dim(), here.dense_dim())
    for found, wanted in zip(parts(there), parts(here)):
        assert found.device.type == "openreg" and found.dtype == wanted.dtype
        torch.testing.assert_close(found.cpu(), wanted)


@each_layout
def test_a_dense_tensor_becomes_sparse_and_dense_again(layout):
    for dense in (matrix(), matrix() * 0, matrix(dtype=torch.int32), matrix().cfloat()):
        here, there = laid_out(dense, layout), laid_out(dense.to("openreg"), layout)
        assert_same(there, here)
        assert torch.equal(there.to_dense().cpu(), dense)


@each_layout
@pytest.mark.parametrize("to", [torch.sparse_coo, *COMPRESSED[:2]], ids=str)
def test_every_layout_becomes_coo_csr_and_csc(layout, to):
    dense = matrix()
    there = laid_out(laid_out(dense.to("openreg"), layout), to)
    # Of blocks, PyTorch keeps the zeros; the CPU has not every pair.
    kept = [x for x in parts(there)[-1].cpu().tolist() if x]
    assert there.layout == to and len(kept) == dense.count_nonzero()
    assert torch.equal(there.to_dense().cpu(), dense)


@pytest.mark.parametrize("layout, to", [COMPRESSED[:2], COMPRESSED[1::-1]], ids=str)
def test_a_change_of_rows_and_columns_keeps_the_type_of_the_indices(layout, to):
    made = laid_out(matrix(), layout)
    first, second = parts(made)[:2]
    here = torch.sparse_compressed_tensor(
        first.int(), second.int(), made.values(), made.shape, layout=layout
    )
    assert_same(laid_out(here.to("openreg"), to), laid_out(here, to))


def test_a_batch_does_not_change_rows_to_columns():
    there = torch.ones(2, 2, 2).to_sparse_csr().to("openreg")
    with pytest.raises(NotImplementedError, match="A batch of SparseCsr matrices becomes no Spars"):
        there.to_sparse_csc()


@pytest.mark.parametrize("layout", COMPRESSED[2:], ids=str)
def test_blocks_of_a_sparse_tensor_are_made_on_the_cpu(layout):
    dense = matrix()
    for there in (dense.to("openreg").to_sparse(), dense.to("openreg").to_sparse_csr()):
        with torch.openreg.fallback("silent"):
            blocks = laid_out(there, layout)
        assert_same(blocks, laid_out(dense, layout))
        with pytest.raises(NotImplementedError, match="aten::_to_sparse_bs. has no openreg kernel"):
            laid_out(there, layout)
        with pytest.raises(ValueError, match="the layout SparseBs[rc] needs the size of its block"):
            there.to_sparse(layout=layout)


@each_layout
def test_copies_keep_the_layout(layout):
    here = laid_out(matrix(), layout)
    there = here.to("openreg")
    assert_same(there, here)
    assert_same(there.to("openreg:1"), here)
    assert_same(there.clone(), here)
    assert_same(copy.deepcopy(there), here)
    assert_same(there.float(), here.float())
    assert_same(torch.empty_like(there).copy_(there), here)
    torch.testing.assert_close(parts(there.cpu()), parts(here), rtol=0, atol=0)


def test_a_tensor_is_made_of_indices_and_values():
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
    there = torch.sparse_coo_tensor(indices.to("openreg"), values.to("openreg"), (2, 3))
    assert_same(there, torch.sparse_coo_tensor(indices, values, (2, 3)))
    assert_same(torch.sparse_coo_tensor(indices, values, device="openreg").coalesce(),
                torch.sparse_coo_tensor(indices, values).coalesce())  # fmt: skip
    assert there._nnz() == 3 and not there.is_coalesced()
    with pytest.raises(RuntimeError, match="Cannot get indices on an uncoalesced tensor"):
        there.indices()
    empty = torch.sparse_coo_tensor((2, 3), device="openreg")
    assert_same(empty, torch.sparse_coo_tensor((2, 3)))
    assert_same(empty.sparse_resize_(torch.Size([4, 3]), 2, 0), torch.sparse_coo_tensor((4, 3)))
    assert_same(torch.zeros(2, 3, layout=torch.sparse_coo, device="openreg"),
                torch.zeros(2, 3, layout=torch.sparse_coo))  # fmt: skip


def test_the_order_of_indices_is_checked_on_request():
    def make(columns):
        indices = torch.tensor([[0, 1, 1], columns], device="openreg")
        values = torch.ones(3, device="openreg")
        return torch.sparse_coo_tensor(
            indices, values, (2, 3), is_coalesced=True, check_invariants=True
        )

    assert make([2, 0, 2]).is_coalesced()
    with pytest.raises(RuntimeError, match="strictly sorted|not coalesced|is_coalesced"):
        make([2, 2, 0])


def test_a_compressed_tensor_is_made_of_its_parts():
    rows, columns = torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2])
    values = torch.tensor([3.0, 4.0, 5.0])
    here = torch.sparse_csr_tensor(rows, columns, values, (2, 3))
    on_device = [x.to("openreg") for x in (rows, columns, values)]
    assert_same(torch.sparse_csr_tensor(*on_device, (2, 3)), here)
    assert_same(torch.sparse_csr_tensor(*on_device), here)
    assert_same(torch.sparse_compressed_tensor(*on_device, layout=torch.sparse_csr), here)
    assert_same(torch.empty(2, 3, layout=torch.sparse_csr, device="openreg").copy_(
        torch.zeros(2, 3).to_sparse_csr()), torch.zeros(2, 3).to_sparse_csr())  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("dense", [(), (2,)])
def test_coalescing_adds_what_is_there_twice(dtype, dense):
    here = repeated(dtype, dense)
    there = here.to("openreg")
    assert_same(there, here)
    assert_same(there.coalesce(), here.coalesce())
    assert_same(there.to_dense(), here.to_dense())
    assert there.coalesce().coalesce().is_coalesced()


def test_truth_values_are_added_up_to_true():
    x = torch.tensor([[True, False], [True, True]], device="openreg").to_sparse()
    assert (x + x).dtype == torch.bool and torch.equal((x + x).to_dense(), x.to_dense())
    number = torch.sparse_coo_tensor(
        torch.empty(0, 2, dtype=torch.long), torch.tensor([True, True]), ()
    )
    assert number.to("openreg").to_dense().item() is True
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        torch.add(x.long(), x.long(), alpha=0.5)


def test_a_print_shows_indices_and_values():
    text = str(matrix().to("openreg").to_sparse())
    assert "indices=tensor([[" in text and "device='openreg:0'" in text
    assert "crow_indices=tensor([" in str(matrix().to("openreg").to_sparse_csr())


ARITHMETIC = {
    "sum": lambda s, t, d: s + t,
    "sum of repeated indices": lambda s, t, d: t + t,
    "sum with a factor": lambda s, t, d: torch.add(s, t, alpha=2),
    "sum with a dense tensor": lambda s, t, d: d + t,
    "in place": lambda s, t, d: d.clone().add_(t, alpha=-0.5),
    "in place, sparse": lambda s, t, d: t.clone().add_(s, alpha=2),
    "difference": lambda s, t, d: d - t,
    "another type": lambda s, t, d: s + t.float(),
    "nothing": lambda s, t, d: s + t * 0,
    "nothing of another density": lambda s, t, d: (
        torch.zeros_like(s).sparse_resize_and_clear_(s.shape, 1, 1) + t
    ),
    "nothing of another density second": lambda s, t, d: (
        t + torch.zeros_like(s).sparse_resize_and_clear_(s.shape, 1, 1)
    ),
    "a number": lambda s, t, d: t * 3,
    "a number in place": lambda s, t, d: t.clone().mul_(0.5),
    "a quotient": lambda s, t, d: t / 4,
    "a negation": lambda s, t, d: -t,
    "absolute values": lambda s, t, d: t.coalesce().abs() + t.coalesce().sgn(),
    "a product": lambda s, t, d: s * t,
    "a product of repeated indices": lambda s, t, d: t * s,
    "a product with a dense tensor": lambda s, t, d: d * t,
    "a product with a row": lambda s, t, d: t * d[0],
    "a product with more dimensions": lambda s, t, d: t * torch.stack([d, -d]),
    "a product with a sparse number": lambda s, t, d: s * d[0, 0].to_sparse(),
    "a product of a sparse number": lambda s, t, d: d[0, 0].to_sparse() * s,
    "a transpose": lambda s, t, d: t.t(),
    "a permutation": lambda s, t, d: t.permute(1, 0),
    "another dimension": lambda s, t, d: t.unsqueeze(0),
    "two after each other": lambda s, t, d: torch.cat([s, t], 1),
    "a row": lambda s, t, d: s.coalesce()[2],
    "a total": lambda s, t, d: t.sum(),
    "sums of rows": lambda s, t, d: torch.sparse.sum(t, 1),
    "sums in a dense tensor": lambda s, t, d: torch.sparse.sum(t, (0, 1)),
    "a mask": lambda s, t, d: d.sparse_mask(s.coalesce()),
    "a mask of a sparse tensor": lambda s, t, d: t.sparse_mask(s.coalesce()),
    "zeros": lambda s, t, d: t.clone().zero_(),
    "zeros of another size": lambda s, t, d: torch.zeros(2, 3, 5, out=t.clone()),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_that_of_the_cpu(name):
    arguments = matrix().to_sparse(), repeated(), torch.randn(4, 6).double()
    here = ARITHMETIC[name](*arguments)
    there = ARITHMETIC[name](*(x.to("openreg") for x in arguments))
    assert there.device.type == "openreg" and there.layout == here.layout
    assert (there.dtype, there.shape) == (here.dtype, here.shape)
    if here.is_sparse:
        assert there.is_coalesced() or not here.is_coalesced()
        assert (there.sparse_dim(), there.dense_dim()) == (here.sparse_dim(), here.dense_dim())
        here, there = here.to_dense(), there.to_dense()
    torch.testing.assert_close(there.cpu(), here)


@each_layout
def test_a_matrix_of_any_layout_is_multiplied_by_a_dense_one(layout):
    dense, other, start = matrix(), torch.randn(6, 3).double(), torch.randn(4, 3).double()
    there = laid_out(dense.to("openreg"), layout)
    right, left = other.to("openreg"), start.t().contiguous().to("openreg")
    for found, wanted in [
        (there @ right, dense @ other),
        (torch.sparse.mm(there, right), dense @ other),
        (there @ right[:, 0], dense @ other[:, 0]),
        (torch.addmm(left.t(), there, right, beta=2, alpha=3), 2 * start + 3 * dense @ other),
        (torch.addmm(left.t() / 0, there, right, beta=0), dense @ other),
        (there.t() @ left.t(), dense.t() @ start),
        (left @ there, start.t() @ dense),
    ]:
        torch.testing.assert_close(found.cpu(), wanted)


def test_compressed_matrices_are_multiplied_and_added(fallback):
    dense = matrix()
    here = dense.to_sparse_csr(), dense.t().to_sparse_csr(), (dense @ dense.t()).to_sparse_csr()
    left, right, start = (x.to("openreg") for x in here)
    for found, wanted in [
        (torch.sparse.mm(left, right), dense @ dense.t()),
        (torch.addmm(start, left, right, beta=2, alpha=3), 5 * dense @ dense.t()),
        (torch.addmm(start * torch.nan, left, right, beta=0), dense @ dense.t()),
    ]:
        assert found.layout == torch.sparse_csr
        torch.testing.assert_close(found.to_dense().cpu(), wanted)


def test_a_product_of_many_entries_needs_little_memory():
    full, dense = torch.rand(512, 512), torch.rand(512, 256)
    for left, right in (full.to_sparse(), dense), (dense.t(), full.to_sparse()):
        ours = [each.to("openreg") for each in (left, right)]
        torch.openreg.reset_peak_memory_stats()
        before = torch.openreg.memory_allocated()
        got = ours[0] @ ours[1]
        # All rows at once are 256 MiB, twice.
        assert torch.openreg.max_memory_allocated() - before < 200 << 20
        torch.testing.assert_close(got.cpu(), left @ right)


@pytest.mark.parametrize("layout", COMPRESSED[:2], ids=str)
def test_compressed_matrices_are_added_and_scaled(layout):
    one, other = matrix(), matrix()
    here = [laid_out(x, layout) for x in (one, other)]
    there = [laid_out(x.to("openreg"), layout) for x in (one, other)]
    assert_same(torch.add(*there, alpha=2), laid_out(one + 2 * other, layout))
    assert_same(there[0] * 2, laid_out(one * 2, layout))
    torch.testing.assert_close((there[0] + other.to("openreg")).cpu(), one + other)
    torch.testing.assert_close((one.to("openreg") + there[1]).cpu(), one + other)
    torch.testing.assert_close(there[0].sum().cpu(), here[0].sum())


@pytest.mark.parametrize("layout", [torch.sparse_coo, *COMPRESSED[:2]], ids=str)
def test_complex_numbers_are_conjugated(layout):
    dense = torch.complex(matrix(), -matrix())
    assert_same(
        laid_out(dense.to("openreg"), layout).conj_physical(), laid_out(dense.conj(), layout)
    )


def gradients(device, layout):
    one = matrix().to(device).to_sparse(layout=layout).requires_grad_()
    other = torch.randn(6, 3, generator=torch.Generator().manual_seed(1)).double()
    other = other.to(device).requires_grad_()
    result = torch.sparse.mm(one, other)
    weights = torch.arange(result.numel(), dtype=torch.float64).reshape(result.shape)
    (result * weights.to(device)).sum().backward()
    grads = [None if x.grad is None else x.grad.to_dense().cpu() for x in (one, other)]
    return [result.detach().cpu(), *grads]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
def test_products_have_the_gradients_of_the_cpu(layout):
    torch.manual_seed(0)
    here = gradients("cpu", layout)
    torch.manual_seed(0)
    torch.testing.assert_close(gradients("openreg", layout), here)


def test_a_mask_without_sparse_dimensions_gives_a_copy():
    x = torch.ones(2, 2, device="openreg")
    mask = torch.sparse_coo_tensor(torch.empty(0, 1, dtype=torch.long), torch.ones(1, 2, 2), (2, 2))
    values = x.sparse_mask(mask.to("openreg"))
    x.zero_()
    assert values.to_dense().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("other", [[0.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("dense", [0, 1])
def test_a_product_with_what_is_absent_is_zero_even_for_infinity(other, dense):
    products = []
    for place in ("cpu", "openreg"):
        pair = [torch.tensor([inf, 1.0, 0.0]), torch.tensor(other)]
        if dense:  # The values are rows.
            pair = [x.unsqueeze(1).expand(3, 2) for x in pair]
        one, two = (x.to(place).to_sparse(1) for x in pair)
        products.append((one * two).to_dense().cpu())
    assert torch.equal(*products)
    assert products[1].flatten()[0] == 0


def test_a_sparse_column_is_broadcast_in_a_product():
    x, column = matrix().to("openreg"), matrix()[:, :1].to("openreg")
    for found in (x.to_sparse() * column.to_sparse(), column.to_sparse() * x.to_sparse()):
        assert found.is_sparse and torch.equal(found.to_dense(), x * column)


@pytest.mark.parametrize(
    "call", [lambda x: x * 2, lambda x: x * x, lambda x: torch.zeros(2, 2).to(x).to_sparse() + x]
)
@pytest.mark.parametrize("place", ["cpu", "openreg"])
def test_a_result_has_indices_of_its_own(call, place):
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]], device=place).to_sparse()
    call(x)._indices().zero_()
    assert x.to_dense().tolist() == [[0, 1], [2, 0]]


@pytest.fixture
def fallback():
    """The CPU may compute a product of two sparse matrices, and select from one."""
    with torch.openreg.fallback("silent"):
        yield


LOSSES = {
    "dense": lambda a, b: (a @ b).to_dense().square().sum(),
    "sum": lambda a, b: torch.sparse.sum(a @ b),
    "values": lambda a, b: (a @ b).coalesce().values().square().sum(),
    "transposed": lambda a, b: (b.t() @ a.t()).to_dense().square().sum(),
    "chain": lambda a, b: (a @ b @ b.t()).to_dense().square().sum(),
}


def gradients_of_both(place, loss, layout):
    torch.manual_seed(0)
    pair = [matrix(*sizes).to_sparse(layout=layout).to(place) for sizes in ((4, 5), (5, 3))]
    pair = [each.requires_grad_() for each in pair]
    loss(*pair).backward()
    return [each.grad.to_dense().cpu() for each in pair]


@pytest.mark.parametrize("name", LOSSES)
def test_a_product_of_two_sparse_matrices_has_the_gradients_of_the_cpu(name, fallback):
    here, there = (
        gradients_of_both(place, LOSSES[name], torch.sparse_coo) for place in ("cpu", "openreg")
    )
    torch.testing.assert_close(there, here)


def test_a_product_of_two_compressed_matrices_has_the_layout_and_gradients_of_the_cpu(fallback):
    for one in COMPRESSED[:2]:
        for other in COMPRESSED[:2]:
            pair = matrix().to_sparse(layout=one), matrix(6, 3).to_sparse(layout=other)
            wanted, found = pair[0] @ pair[1], pair[0].to("openreg") @ pair[1].to("openreg")
            assert found.layout == wanted.layout
            assert torch.equal(found.to_dense().cpu(), wanted.to_dense())
    here, there = (
        gradients_of_both(place, LOSSES["dense"], torch.sparse_csr) for place in ("cpu", "openreg")
    )
    torch.testing.assert_close(there, here)


def test_rows_of_a_sparse_matrix_are_selected_and_have_no_gradient_on_either_place(fallback):
    x, places = matrix().to_sparse(), torch.tensor([0, 2, 2])
    there = x.to("openreg")
    for dim in (0, 1):
        found = there.index_select(dim, places.to("openreg")).to_dense().cpu()
        assert torch.equal(found, x.index_select(dim, places).to_dense())
    for each, index in ((x, places), (there, places.to("openreg"))):
        loss = each.clone().requires_grad_().index_select(0, index).to_dense().sum()
        with pytest.raises(NotImplementedError, match=r"aten::index_add_"):
            loss.backward()


def test_only_the_entries_of_a_sample_are_computed():
    sample, one, other = matrix(), torch.randn(4, 5).double(), torch.randn(5, 6).double()
    here, results = [sample.to_sparse_csr(), one, other], []
    for arguments in (here, [x.to("openreg") for x in here]):
        arguments = [x.detach().requires_grad_() for x in arguments]
        made = torch.sparse.sampled_addmm(*arguments, beta=0.5, alpha=2)
        made.to_dense().square().sum().backward()
        results.append([made.detach(), *(x.grad for x in arguments)])
    for there, wanted in zip(results[1], results[0]):
        assert_same(there, wanted)


def test_gradients_reach_values_and_dense_tensors():
    results = []
    for device in ("cpu", "openreg"):
        values = torch.arange(1.0, 6.0).to(device).requires_grad_()
        dense = torch.ones(4, 6).to(device).requires_grad_()
        there = torch.sparse_coo_tensor(repeated()._indices().to(device), values, (4, 6))
        (dense.to_sparse() + there.coalesce() * 2).to_dense().square().sum().backward()
        results.append((values.grad.cpu(), dense.grad.cpu()))
    torch.testing.assert_close(results[1], results[0])


def trained(device, make_optimizer):
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(10, 3, sparse=True).to(device)
    optimizer = make_optimizer(embedding.parameters())
    for words in torch.tensor([[1, 4, 1], [9, 4, 0], [1, 1, 1]]).to(device):
        optimizer.zero_grad()
        (embedding(words).square().sum() + embedding(words[:2]).sum()).backward()
        assert embedding.weight.grad.is_sparse
        optimizer.step()
    return embedding.weight.detach().cpu()


@pytest.mark.parametrize("make_optimizer", [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.SparseAdam(list(parameters), lr=0.1),
    lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
], ids=["SGD", "momentum", "SparseAdam", "Adagrad"])  # fmt: skip
def test_an_embedding_is_trained_with_sparse_gradients(make_optimizer):
    found, wanted = trained("openreg", make_optimizer), trained("cpu", make_optimizer)
    torch.testing.assert_close(found, wanted)


def test_a_graph_convolution_is_trained_with_a_sparse_adjacency():
    edges = (torch.rand(8, 8) < 0.3).float() + torch.eye(8)
    features, labels = torch.randn(8, 5), torch.arange(8) % 3
    losses = {}
    for device in ("cpu", "openreg"):
        torch.manual_seed(0)
        layers = torch.nn.ModuleList([torch.nn.Linear(5, 16), torch.nn.Linear(16, 3)]).to(device)
        optimizer = torch.optim.SGD(layers.parameters(), lr=0.5)
        adjacency = (edges / edges.sum(1, keepdim=True)).to_sparse_csr().to(device)
        losses[device] = []
        for _ in range(20):
            optimizer.zero_grad()
            hidden = torch.relu(adjacency @ layers[0](features.to(device)))
            output = adjacency @ layers[1](hidden)
            loss = torch.nn.functional.cross_entropy(output, labels.to(device))
            loss.backward()
            optimizer.step()
            losses[device].append(loss.item())
    assert losses["openreg"][-1] < losses["openreg"][0]
    assert losses["openreg"] == pytest.approx(losses["cpu"], rel=1e-4)


def test_a_step_with_a_sparse_gradient_does_not_wait_for_the_device():
    x, words = torch.ones(2000, 2000, device="openreg"), torch.arange(9, device="openreg")
    embedding = torch.nn.Embedding(10, 3, sparse=True, device="openreg")
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
    adjacency = x.to_sparse_csr()
    torch.openreg.synchronize()
    for _ in range(8):
        y = x @ x
    (embedding(words).sum() + embedding(words[:4]).sum()).backward()
    optimizer.step()
    adjacency @ y[:, :2]
    assert not torch.accelerator.current_stream().query()


REFUSED = {
    "another size": (
        lambda s, d: d[:2] + s, RuntimeError,
        r"add: expected 'self' and 'other' to have the same sizes, but \[2, 6\] != \[4, 6\]"),
    "a dense tensor second": (
        lambda s, d: s + d, RuntimeError,
        r"add\(sparse, dense\) is not supported. Use add\(dense, sparse\) instead."),
    "a sum of another type": (
        lambda s, d: torch.addmm(torch.ones_like(d.t() @ d).long(), s.t(), d), RuntimeError,
        "addmm: the result is of double, but got long int."),
    "another density": (
        lambda s, d: s + d.to_sparse(1), RuntimeError,
        "'self' has 2 sparse dimensions while 'other' has 1 sparse dimensions"),
    "a result that does not fit": (
        lambda s, d: s.long().mul_(0.5), RuntimeError,
        "result type Float can't be cast to the desired output type Long"),
    "a dense result that does not fit": (
        lambda s, d: d.long().add_(s), RuntimeError,
        "result type Double can't be cast to the desired output type Long"),
    "a compressed result that does not fit": (
        lambda s, d: s.long().to_sparse_csr().add_(s.to_sparse_csr()), RuntimeError,
        "result type Double can't be cast to the desired output type Long"),
    "two devices": (
        lambda s, d: s + s.to("openreg:1"), RuntimeError,
        "on the same device, but found at least two devices, openreg:0 and openreg:1"),
    "a factor on two devices": (
        lambda s, d: s @ d.t().to("openreg:1"), RuntimeError,
        "Expected all tensors to be on the same device, but found"),
    "a mask of another size": (
        lambda s, d: d[:2].sparse_mask(s), RuntimeError,
        r"operands have incompatible sizes; self has size \[2, 6\] but mask has size \[4, 6\]"),
    "a product of other sizes": (
        lambda s, d: s @ d, RuntimeError,
        r"mat1 and mat2 shapes cannot be multiplied \(4x6 and 4x6\)"),
    "a product of other types": (
        lambda s, d: s @ d.t().float(), RuntimeError,
        "expected mat1 and mat2 to have the same dtype, but got: double != float"),
    "a product with more dimensions": (
        lambda s, d: torch.addmm(d, s.unsqueeze(0), d), RuntimeError,
        "addmm: expected matrices, but got tensors of 3 and 2 dimensions."),
    "a product added to a sparse matrix": (
        lambda s, d: torch.addmm(s.to_sparse_csr(), s.to_sparse_csr(), d.t()), RuntimeError,
        "addmm: expected strided result tensor, got tensor with layout SparseCsr; make it dense"),
    "two sparse factors in COO": (
        lambda s, d: s @ d.t().to_sparse(), NotImplementedError,
        "aten::_sparse_sparse_matmul has no openreg kernel, and the fallback policy"),
    "a sample of halves": (
        lambda s, d: torch.sparse.sampled_addmm(
            s.half().to_sparse_csr(), d.half(), (d.t() @ d).half()),
        RuntimeError, "Expected self to be a floating-point or complex tensor, but got Half"),
    "a sample of other sizes": (
        lambda s, d: torch.sparse.sampled_addmm(s.to_sparse_csr(), d, d), RuntimeError,
        r"the product of \[4, 6\] and \[4, 6\] does not have the sizes of self, \[4, 6\]."),
    "a sample in another layout": (
        lambda s, d: torch.sparse.sampled_addmm(s.to_sparse_csc(), d, d.t()), RuntimeError,
        "openreg takes a matrix in the layout CSR and two dense ones."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_a_sentence(name):
    act, error, sentence = REFUSED[name]
    dense = matrix().to("openreg")
    with pytest.raises(error, match=sentence):
        act(dense.to_sparse(), dense)


FIRST = """
import torch
try:
    torch.nn.functional.hardswish({make})
except NotImplementedError as error:
    print(error)
"""


@pytest.mark.parametrize("make", [
    "torch.sparse_coo_tensor((2, 2), device='openreg')",
    "torch.empty(2, 2, layout=torch.sparse_csr, device='openreg')",
])  # fmt: skip
def test_the_first_tensor_of_a_program_may_be_sparse(make):
    done = run(FIRST.format(make=make))
    sentence = "Could not run 'aten::hardswish' with arguments from the 'Sparse"
    assert sentence in done.stdout, done.stderr


def test_an_entry_outside_of_its_matrix_is_refused_by_the_product():
    indices, values = torch.tensor([[0], [3]]), torch.ones(1)
    matrix = torch.ops.aten._sparse_coo_tensor_unsafe(
        indices.to("openreg"), values.to("openreg"), (2, 3)
    )
    told = r"addmm: An entry at \(0, 3\) is outside of the matrix\."
    with pytest.raises(RuntimeError, match=told):
        (matrix @ torch.ones(3, 2, device="openreg")).cpu()


def test_a_product_reads_and_writes_conjugates():
    a, b = torch.randn(4, 6, dtype=torch.complex64), torch.randn(6, 5, dtype=torch.complex64)
    sparse, dense = a.to_sparse().to("openreg"), b.to("openreg")
    torch.testing.assert_close((sparse @ dense.conj()).cpu(), a @ b.conj())
    out = torch.zeros(4, 5, dtype=torch.complex64, device="openreg").conj()
    torch.addmm(torch.ones_like(out), sparse, dense, out=out)
    torch.testing.assert_close(out.cpu(), 1 + a @ b)
