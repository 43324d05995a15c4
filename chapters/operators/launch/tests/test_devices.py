# SPDX-License-Identifier: BSD-3-Clause
"""Which devices meet in an operator: one of ours, and numbers of the host that are only read."""

import re

import pytest
import torch

CPU, FIRST, SECOND = (torch.ones(2, device=place) for place in ("cpu", "openreg:0", "openreg:1"))

# By hand, from the library in three ways, and in a list.
OPERATORS = {
    "add": torch.add,
    "aten::dot": torch.dot,
    "aten::mm": lambda x, y: torch.mm(x[None], y[:, None], out=FIRST.new_empty(1, 1)),
    "aten::where": lambda x, y: torch.where(FIRST > 0, x, y),
    "aten::cat": lambda x, y: torch.cat([x, y]),
    "aten::mul": lambda x, y: x * y,
    "aten::mse_loss": torch.nn.functional.mse_loss,
    "aten::clamp": lambda x, y: x.clamp(y, y),
    "aten::_linalg_solve_ex": lambda x, y: torch.linalg.solve(x.diag(), y),
    "index_select": lambda x, y: x.index_select(0, y.long()),
}


@pytest.mark.library  # our launch says it; the fallback takes tensors of any device
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("other", [CPU, SECOND], ids=lambda x: str(x.device))
@pytest.mark.parametrize("swapped", [False, True])
def test_tensors_of_two_devices_are_refused_by_the_operators_name(name, other, swapped):
    arguments = (other, FIRST) if swapped else (FIRST, other)
    places = ["openreg:0", str(other.device)]
    if swapped and other is SECOND and name != "aten::where":
        places.reverse()  # In the order of the arguments; the host is never the first.
    told = (
        f"{name}: Expected all tensors to be on the same device, but found at least two devices, "
        f"{places[0]} and {places[1]}; move them with .to()."
    )
    with pytest.raises(RuntimeError, match=re.escape(told)):
        OPERATORS[name](*arguments)
    torch.openreg.synchronize()


@pytest.mark.library  # our launch says it
@pytest.mark.parametrize("name", ["aten::dot", "add"])
def test_an_operator_of_ours_is_refused_if_nothing_is_on_a_device(name):
    op = {"aten::dot": torch.ops.aten.dot.default, "add": torch.ops.aten.add.Tensor}[name]
    told = f"{name} needs at least one tensor on an openreg device."
    with pytest.raises(RuntimeError, match=told):
        op._op_dk(torch._C.DispatchKey.PrivateUse1, torch.tensor(1.0), torch.tensor(1.0))


@pytest.mark.library  # our launch says it
@pytest.mark.parametrize("write,name", [
    (lambda number, x: torch.mul(x, x, out=number), "aten::mul"),
    (lambda number, x: torch.frexp(x, out=(number, x.int())), "aten::frexp"),
    (lambda number, x: number.index_fill_(0, x.long() * 0, 7), "aten::index_fill_"),
    (lambda number, x: number.masked_fill_(x > 0, 7), "masked_fill_"),
])  # fmt: skip
def test_a_number_of_the_host_is_not_written_by_a_kernel(write, name):
    number = torch.tensor(2.0)
    told = f"{name} on an openreg device cannot write to a tensor on cpu; move that tensor with"
    with pytest.raises(RuntimeError, match=re.escape(told)):
        write(number, torch.tensor(3.0, device="openreg"))
    torch.openreg.synchronize()
    assert number.item() == 2


@pytest.mark.library  # fill_ has a kernel
@pytest.mark.parametrize("source", ["cpu", "openreg:0", "openreg:1"])
@pytest.mark.parametrize("target", ["cpu", "openreg:0", "openreg:1"])
def test_a_tensor_is_filled_with_a_number_of_any_device(source, target):
    value = torch.tensor(3.0, device=source)
    for shape in [(), (2, 3), (0,)]:
        x = torch.ones(shape, device=target).fill_(value)
        assert x.device == torch.device(target)
        assert torch.equal(x.cpu(), torch.full(shape, 3.0))


@pytest.mark.library  # fill_ has a kernel
def test_only_one_number_fills_a_tensor():
    with pytest.raises(RuntimeError, match="fill_ takes a tensor of 0 dimensions, not of 1."):
        FIRST.clone().fill_(FIRST)


@pytest.mark.library  # fill_ has a kernel
@pytest.mark.parametrize("place", ["cpu", "openreg:0", "openreg:1"])
def test_an_expanded_tensor_is_filled_with_a_number_and_not_with_a_tensor(place):
    x = torch.ones(2, 1, device="openreg").expand(2, 3)
    assert x.fill_(3).tolist() == [[3] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.fill_(torch.tensor(4.0, device=place))
    assert x.zero_().tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("place", ["openreg:0", "openreg:1"])
def test_an_operator_runs_on_the_device_of_its_tensors_whichever_is_current(place):
    x = torch.arange(4.0, device=place)
    number = torch.tensor(1.0)
    results = [x + 1, number + x, x.isnan(), x.nonzero(), x.cumsum(0), torch.rsub(x, number)]
    assert {str(result.device) for result in results} == {place}
    assert torch.openreg.current_device() == 0


@pytest.mark.library  # each use has a kernel
@pytest.mark.parametrize("use", [
    lambda x: x + 1,
    lambda x: x.add_(1),
    lambda x: x + x[:0].sum(),
    lambda x: x.mul(2),
    lambda x: x.sum(),
    lambda x: x.fill_(1),
    lambda x: x.random_(),
    lambda x: x.nonzero(),
    lambda x: x.view(2, 5) @ x.view(5, 2),
    lambda x: x.clone(),
    lambda x: x.cpu(),
    lambda x: x.to("openreg:1"),
    lambda x: x.copy_(torch.ones(10)),
    lambda x: torch.nn.functional.layer_norm(x, (10,)),
    repr,
])  # fmt: skip
def test_a_tensor_whose_storage_was_given_back_is_refused_until_it_is_there_again(use):
    x = torch.arange(10.0, device="openreg")
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="has no memory: its storage was resized to 0 bytes."):
        use(x)
    x.untyped_storage().resize_(40)
    assert x.fill_(1).sum().item() == 10
