# SPDX-License-Identifier: BSD-3-Clause
import copy

import pytest
import torch
from driver import commands
from running import run
from torch._subclasses.fake_tensor import FakeTensorMode


@pytest.fixture
def x():
    return torch.arange(6.0, device="openreg").reshape(2, 3)


def test_a_tensor_is_made_on_its_device():
    assert torch.empty(2, device="openreg").device == torch.device("openreg:0")
    assert torch.empty(2, device="openreg:1").device == torch.device("openreg:1")
    assert torch.empty((2, 3), device="openreg", memory_format=None).stride() == (3, 1)
    assert torch.empty_strided((2, 3), (1, 2), device="openreg").stride() == (1, 2)
    assert torch.empty(0, device="openreg").numel() == 0


def test_memory_comes_from_the_caching_allocator():
    before = torch.openreg.memory_allocated()
    x = torch.empty(1024, device="openreg")
    assert torch.openreg.memory_allocated() - before == 4096
    del x
    assert torch.openreg.memory_allocated() == before


def test_device_memory_cannot_be_pinned():
    told = "Memory of an openreg device cannot be pinned; pin the CPU tensor instead."
    with pytest.raises(RuntimeError, match=told):
        torch.empty(2, device="openreg", pin_memory=True)
    with pytest.raises(RuntimeError, match=told):
        torch.empty_strided((2,), (1,), device="openreg", pin_memory=True)


@pytest.mark.parametrize("make,operator,key", [
    (lambda x: torch.empty_strided((2,), (1,), layout=torch.sparse_coo, device="openreg"),
     "empty_strided", "Sparse"),
    (lambda x: x.to_sparse().cos(), "cos", "Sparse"),
    (lambda x: torch.nn.functional.hardswish(x.to_sparse_csr()), "hardswish", "SparseCsr"),
    (lambda x: torch.quantize_per_tensor(x, 1.0, 0, torch.qint8) * 2,
     "empty.memory_format", "Quantized"),
    (lambda x: torch.nested.nested_tensor([x, x]).exp(), "exp", "NestedTensor"),
    # The tensors are on the host, so it is made without asking us.
    (lambda x: torch.nested.as_nested_tensor([x.cpu().requires_grad_()], device="openreg").exp(),
     "exp", "NestedTensor"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_that_is_more_than_memory_is_refused_by_its_kind(x, make, operator, key):
    told = f"'aten::{operator}' with arguments from the '{key}openreg' backend"
    with pytest.raises(NotImplementedError, match=told):
        make(x)


# Factories of other layouts, none of which needs a tensor of the device.
FIRST = """
import torch
aten, device = torch.ops.aten, {"device": "openreg"}
sparse = {"layout": torch.sparse_coo, **device}
quantized = {"dtype": torch.qint8, **device}
for factory in [
    lambda: torch.empty_strided((2,), (1,), **sparse),
    lambda: torch._efficientzerotensor((2,), **sparse),
    lambda: torch.tril_indices(2, 2, **sparse),
    lambda: torch.triu_indices(2, 2, **sparse),
    lambda: aten.from_file("/dev/null", False, 0, dtype=torch.uint8, **sparse),
    lambda: torch.empty(2, **quantized),
]:
    try:
        print(factory())
    except NotImplementedError as error:
        print("from the 'Sparse" in str(error), "from the 'Quantized" in str(error))
"""


def test_the_first_tensor_of_a_program_may_be_of_a_kind_that_is_refused():
    done = run(FIRST)
    assert done.stdout.splitlines() == ["True False"] * 5 + ["False True"], done.stderr


@pytest.mark.filterwarnings("ignore")
def test_what_pytorch_composes_for_such_tensors_works(x):
    weight = torch.ones(4, x.size(1))
    results = []
    for place in ("cpu", x.device):
        rows = [part.detach().to(place).requires_grad_() for part in (x, x[:1])]
        nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
        y = torch.nn.functional.linear((nested * 2 + nested).sin(), weight.to(place))
        padded = torch.nested.to_padded_tensor(y, 0.0)
        padded.sum().backward()
        results.append([padded, y.values(), *(row.grad for row in rows)])
    torch.testing.assert_close(*results, check_device=False)


def test_memory_of_another_kind_of_device_is_refused():
    key = torch._C.DispatchKey.PrivateUse1
    told = "openreg cannot allocate on meta; it allocates on openreg devices only."
    with pytest.raises(ValueError, match=told):
        torch.ops.aten.empty.memory_format._op_dk(key, [2], device=torch.device("meta"))


@pytest.mark.parametrize("view", [
    lambda x: x[1],
    lambda x: x[:, ::2],
    lambda x: x.t(),
    lambda x: x.view(3, 2),
    lambda x: x.reshape(6),
    lambda x: x.unfold(1, 2, 1),
    lambda x: x.expand(2, 2, 3),
    lambda x: x.as_strided((2, 2), (1, 2)),
    lambda x: x.unsqueeze(0),
    lambda x: x.diagonal(),
    lambda x: torch.view_as_complex(x.view(3, 2)),
    lambda x: torch.view_as_real(torch.view_as_complex(x.view(3, 2))),
])  # fmt: skip
def test_a_view_shares_memory_and_agrees_with_the_cpu(x, view):
    seen = view(x)
    assert seen.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert torch.equal(seen.cpu(), view(x.cpu()))


def test_writes_through_a_view_are_not_lost(x):
    x.t()[0] = 7
    x.view(6)[5] = 9
    x.unfold(1, 2, 2)[0, 0, 1] = 5
    assert x.tolist() == [[7, 5, 2], [7, 4, 9]]


def test_a_tensor_is_resized_and_keeps_what_fits(x):
    x.resize_(1, 2)
    assert x.tolist() == [[0, 1]]
    x.resize_(100)
    assert x[:6].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tensor_takes_another_storage(x):
    other = torch.empty(0, device="openreg")
    other.set_(x)
    assert torch.equal(other.cpu(), x.cpu())
    other.set_(x.untyped_storage(), 1, (2,), (2,))
    assert other.tolist() == [1, 3]
    assert torch.empty(0, device="openreg").set_(x.untyped_storage()).numel() == 6
    assert other.set_().numel() == 0


def test_two_tensors_know_whether_they_are_one_view_of_one_storage(x):
    assert x.is_set_to(x.view(2, 3)) and torch.empty(0, device="openreg").set_(x).is_set_to(x)
    assert not any(x.is_set_to(y) for y in (x.t(), x[:1], x.clone(), x.cpu()))


def test_a_deep_copy_has_its_own_memory(x):
    y = copy.deepcopy(x)
    y.zero_()
    assert x.sum().item() == 15


def test_a_moved_module_keeps_its_parameters():
    module = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    weight = module.weight
    module.to("openreg")
    assert module.weight is weight
    module(torch.ones(1, 2, device="openreg")).sum().backward()
    before = weight.detach().cpu()
    optimizer.step()
    assert torch.equal(weight.detach().cpu(), before - 1)


def test_a_tensor_grows_into_a_storage_that_grows():
    x = torch.empty(0, device="openreg")
    x.set_(torch.UntypedStorage(4, device="openreg"), 1, (3,), (2,))
    assert x.untyped_storage().nbytes() == 24
    x.resize_(2, 2, 2, 2, memory_format=torch.channels_last)
    assert x.stride() == (8, 1, 4, 2)


def test_a_view_that_grows_counts_what_lies_before_it():
    x = torch.arange(4.0, device="openreg")[2:].resize_(4)
    assert x.untyped_storage().nbytes() == 24
    assert x[:2].tolist() == [2, 3]


def test_resizing_to_the_same_sizes_changes_nothing():
    x = torch.arange(6.0, device="openreg").view(2, 3).t()
    x.resize_(3, 2)
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_resizing_an_expanded_tensor_to_its_sizes_needs_no_memory():
    x = torch.zeros(1, device="openreg").expand(10).resize_(10)
    assert x.stride() == (0,) and x.untyped_storage().nbytes() == 4


def test_a_tensor_that_cannot_grow_keeps_its_sizes(x):
    before = x.shape
    with pytest.raises(torch.OutOfMemoryError):
        x.resize_(1 << 40)
    assert x.shape == before


def test_a_storage_of_another_device_is_refused_and_stays_there():
    host = torch.empty(0)
    for other, where in [(host, "cpu"), (torch.empty(0, device="openreg:1"), "openreg:1")]:
        told = f"The storage is on {where}, the tensor on openreg:0; they must be on one device."
        with pytest.raises(RuntimeError, match=told):
            torch.empty(0, device="openreg").set_(other.untyped_storage(), 0, (4,), (1,))
    assert host.resize_(4).fill_(1).tolist() == [1, 1, 1, 1]


def test_a_tensor_cannot_begin_before_its_storage(x):
    with pytest.raises(RuntimeError, match="A tensor cannot begin 1 elements before its storage."):
        x.set_(x.untyped_storage(), -1, (2,), (1,))
    assert x.numel() == 6


def test_a_preserved_memory_format_is_refused_when_resizing(x):
    told = "resize_ cannot preserve a memory format; leave it out, or"
    with pytest.raises(ValueError, match=told):
        x.resize_(3, memory_format=torch.preserve_format)


def test_new_memory_is_filled_when_a_program_must_be_deterministic(deterministic):
    assert torch.empty(2, device="openreg").isnan().all()
    assert torch.empty_strided((2,), (1,), dtype=torch.int8, device="openreg").tolist() == [127] * 2
    assert torch.zeros(1, device="openreg").resize_(3).isnan().tolist() == [False, True, True]


# Each view operator that this chapter registers, and arguments for it.
VIEWS = {
    "as_strided": (torch.float32, (2, 3), [(2, 2), (3, 1), 1]),
    "view": (torch.float32, (2, 3), [(3, 2)]),
    "_reshape_alias": (torch.float32, (2, 3), [(3, 2), (2, 1)]),
    "unfold": (torch.float32, (2, 3), [1, 2, 1]),
    "view_as_real": (torch.complex64, (2, 3), []),
    "view_as_complex": (torch.float32, (3, 2), []),
}


def geometry(tensor):
    return tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype


def test_these_are_all_views_that_are_registered():
    registered = set()
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1"):
        schema = torch._C._get_schema(*[*name.split("."), ""][:2])
        shares = any(r.alias_info and not r.alias_info.is_write for r in schema.returns)
        if name.startswith("aten::") and shares:
            registered.add(name.removeprefix("aten::"))
    # A nested tensor has no strides to compare; its view is tested with the other layouts.
    assert registered - {"_nested_view_from_buffer"} == set(VIEWS)


@pytest.mark.simulator  # it observes commands
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_never_looks_at_data(name):
    dtype, shape, arguments = VIEWS[name]
    view = getattr(torch.ops.aten, name).default
    real = view(torch.zeros(shape, dtype=dtype, device="openreg"), *arguments)
    # Our kernel, on a tensor whose storage has no data;
    meta = torch.empty(shape, dtype=dtype, device="meta")
    seen = view._op_dk(torch._C.DispatchKey.PrivateUse1, meta, *arguments)
    assert geometry(seen) == geometry(real)
    # on one of ours, for which the device has nothing to do;
    whole = torch.empty(shape, dtype=dtype, device="openreg")
    assert commands(lambda: view(whole, *arguments)) == []
    # and PyTorch's own idea of it, without any kernel.
    with FakeTensorMode():
        fake = view(torch.empty(shape, dtype=dtype, device="openreg:1"), *arguments)
    assert geometry(fake) == geometry(real) and fake.device == torch.device("openreg:1")
