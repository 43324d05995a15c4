# SPDX-License-Identifier: BSD-3-Clause
"""Inside `torch.export`: what PyTorch's pass loses, what ours keeps, and what runs on the device.

Where a test says what PyTorch 2.13 does wrong, its failure is news: PyTorch has been repaired.
"""

import io
from contextlib import nullcontext

import pytest
import torch
from outline import BF16, NO_GRAD, autocast, outline
from torch_openreg.export import replace_autocast_with_hop_pass, use_our_pass

strictness = pytest.mark.parametrize("strict", [False, True], ids=["non-strict", "strict"])


def low(device="cpu", **settings):
    return torch.autocast(device, **{"dtype": BF16, **settings})


class Model(torch.nn.Module):
    """A model whose forward is the function given; `self` is its first argument."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def exported(model, *inputs, by="us", **settings):
    with use_our_pass() if by == "us" else nullcontext():
        return torch.export.export(model, inputs, **settings)


def loaded(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def forms_of(program):
    """The program as it is, after saving and loading, and after decomposition."""
    return [program, loaded(program), program.run_decompositions({})]


def gradient(function, x):
    x = x.clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.rand(4, 4)


# A region around a higher-order operator.


def choose(self, x):
    with low():
        y = x @ x
        return torch.cond(y.sum() > 0, lambda y: y @ y, lambda y: y @ y + 1, (y,)) + 1


def repeat(self, x):
    with low():
        more = lambda i, y: i < 3  # noqa: E731
        step = lambda i, y: (i + 1, (y @ y).float())  # noqa: E731
        return torch._higher_order_ops.while_loop(more, step, (torch.tensor(0), x))[1]


@strictness
@pytest.mark.parametrize("function", [choose, repeat])
def test_a_region_around_cond_or_while_loop_can_be_saved(function, strict, x):
    model = Model(function)
    theirs = exported(model, x, by="torch", strict=strict)
    assert "wrap_with_autocast" not in str(theirs.graph)
    with pytest.raises(AssertionError, match="symbol '_enter_autocast' not in def_table"):
        loaded(theirs)

    ours = exported(model, x, strict=strict)
    (region,) = [line for line in outline(ours.graph_module) if "wrap_with" in line[0]]
    assert region[0] == autocast(cache=None if strict else False)
    for program in forms_of(ours):
        torch.testing.assert_close(program.module()(x), model(x), rtol=0, atol=0)


# Gradients that are off.


def test_no_grad_inside_a_region_is_kept(x):
    def function(self, x):
        with low(cache_enabled=False):  # as tracing records it: a cache rounds gradients later
            y = x @ x
            with torch.no_grad():
                z = y @ x
            return z @ y

    model = Model(function)
    theirs = exported(model, x, by="torch")
    assert outline(theirs.graph_module) == [(autocast(), ["matmul"])] * 3
    assert not torch.equal(gradient(theirs.module(), x), gradient(model, x))

    ours = exported(model, x)
    inner = (NO_GRAD, ["matmul"])
    assert outline(ours.graph_module) == [(autocast(), ["matmul", inner, "matmul"])]
    for program in (ours, loaded(ours)):
        assert torch.equal(program.module()(x), model(x))
        assert torch.equal(gradient(program.module(), x), gradient(model, x))


@strictness
def test_no_grad_around_cond_is_kept(strict, x):
    def function(self, x):
        with torch.no_grad():
            y = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,))
        return x * y

    model = Model(function)
    theirs = exported(model, x, by="torch", strict=strict)
    assert not torch.equal(gradient(theirs.module(), x), gradient(model, x))
    ours = exported(model, x, strict=strict)
    assert torch.equal(gradient(ours.module(), x), gradient(model, x))


def test_in_the_place_of_pytorchs_alone_ours_comes_too_late_for_no_grad(x, monkeypatch):
    from torch._export.passes import replace_autocast_with_hop_pass as theirs

    def function(self, x):
        with low():
            with torch.no_grad():
                return x @ x

    assert "wrap_with_set_grad_enabled" in str(exported(Model(function), x))
    monkeypatch.setattr(theirs, "replace_autocast_with_hop_pass", replace_autocast_with_hop_pass)
    program = exported(Model(function), x, by="torch")
    assert outline(program.graph_module) == [(autocast(), ["matmul"])]


# Regions that are there for what they do.


def add_to_buffer(self, x):
    with low():
        self.total.add_(x @ x)
    return x + 1


def add_to_buffer_without_gradients(self, x):
    with low(), torch.no_grad():
        self.total.add_(x @ x)
    return x + 1


def check(self, x):
    with low():
        torch._check(x.sum().item() > 0)
    return x + 1


@strictness
@pytest.mark.parametrize("function", [add_to_buffer, add_to_buffer_without_gradients, check])
def test_a_region_that_is_there_for_what_it_does_stays(function, strict, x):
    def calls_left(program):
        gm = program.module()
        gm.graph.eliminate_dead_code()
        gm.recompile()
        return gm, sum("wrap_with" in str(node.target) for node in gm.graph.nodes)

    model = Model(function, total=torch.zeros(4, 4))
    theirs = exported(model, x, by="torch", strict=strict)
    assert calls_left(theirs)[1] == 0
    with pytest.raises(torch._export.verifier.SpecViolationError, match="missing val field"):
        loaded(theirs)

    for program in [ours := exported(model, x, strict=strict), loaded(ours)]:
        gm, calls = calls_left(program)
        assert calls == 1
        if function is check:
            with pytest.raises(RuntimeError, match="Runtime assertion failed"):
                gm(-x)
        else:
            before = gm.total.clone()
            gm(x)
            assert not torch.equal(gm.total, before)
    decomposed = ours.run_decompositions({})
    assert len(decomposed.graph_signature.buffers_to_mutate) == (function is not check)


def test_a_region_that_does_nothing_can_be_saved_and_loaded_and_removed(x):
    def function(self, x):
        with low():
            x @ x
        return x + 1

    theirs = exported(Model(function), x, by="torch")
    with pytest.raises(torch._export.verifier.SpecViolationError, match="missing val field"):
        loaded(theirs)
    gm = loaded(exported(Model(function), x)).module()
    assert torch.equal(gm(x), x + 1)
    gm.graph.eliminate_dead_code()
    assert "wrap_with" not in str(gm.graph)


def test_a_region_with_effects_and_outputs_has_no_anchor(x):
    def function(self, x):
        with low():
            y = x @ x
            self.total.add_(y)
        return y

    region = (autocast(), ["matmul", "add_"])
    assert outline(exported(Model(function, total=x), x).graph_module) == [region]


# What works with PyTorch's pass works with ours.


def sizes(self, x):
    with low():
        y = x @ x.T
        z = y.reshape(x.shape[0] * x.shape[0])
    return z, x.shape[0]


def numbers_from_data(self, x):
    with low():
        count = x.sum().to(torch.int64).item()
        torch._check(count >= 0)
        y = x.new_ones(count + 1, 4) @ x
    return y, count + 2, y[y[:, 0] > 1]


def weights_and_constants(self, x):
    with low():
        y = self.layer(x) + torch.ones(4)
        with low(enabled=False):
            z = self.layer(x)
    return {"y": y, "z": [z, x]}


def batch_norm(self, x):
    with low():
        return self.norm(x @ x)


def random_numbers(self, x):
    with low():
        return torch.nn.functional.dropout(x @ x)


@strictness
@pytest.mark.parametrize(
    "function", [sizes, numbers_from_data, weights_and_constants, batch_norm, random_numbers]
)
def test_the_program_computes_what_the_model_computes(function, strict, x):
    model = Model(function, layer=torch.nn.Linear(4, 4), norm=torch.nn.BatchNorm1d(4))
    dynamic = {"inputs": ({0: torch.export.Dim.AUTO},)} if function is sizes else None
    ours = exported(model, x, strict=strict, dynamic_shapes=dynamic)
    leaves = torch.utils._pytree.tree_leaves
    for program in forms_of(ours):
        torch.manual_seed(1)
        got = leaves(program.module()(x))
        torch.manual_seed(1)
        for one, other in zip(got, leaves(model(x)), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert ours.graph_signature.user_outputs == tuple(
        getattr(node, "name", node) for node in ours.graph.output_node().args[0]
    )


@pytest.mark.parametrize("by", ["us", "torch"])
def test_what_strict_tracing_gets_wrong_no_pass_can_mend(by, x):
    def function(self, x):
        with low():
            y = x @ x
        return y.float()

    program = exported(Model(function), x, by=by, strict=True)
    with pytest.raises(RuntimeError, match="Expected: Float, Got: c10::BFloat16"):
        program.module()(x)


def test_after_use_pytorchs_passes_are_back():
    from torch._export.passes import replace_autocast_with_hop_pass as autocast
    from torch._export.passes import replace_set_grad_with_hop_pass as set_grad

    def both():
        return autocast.replace_autocast_with_hop_pass, set_grad.replace_set_grad_with_hop_pass

    before = both()
    with pytest.raises(RuntimeError, match="stop"), use_our_pass():
        assert both()[0] is replace_autocast_with_hop_pass
        raise RuntimeError("stop")
    assert both() == before


# On the device.


def test_cond_works_under_autocast_of_the_device():
    x = torch.rand(4, 4, device="openreg", requires_grad=True)
    with low("openreg"):
        y = torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ x + 1, (x,))
    assert y.dtype == BF16
    y.sum().backward()
    assert x.grad.dtype == torch.float32


def test_without_our_rule_cond_would_not_work_there(monkeypatch):
    cond = torch.ops.higher_order.cond
    keys = cond.non_fallthrough_keys.add(torch._C.DispatchKey.AutocastPrivateUse1)
    monkeypatch.setattr(cond, "non_fallthrough_keys", keys)
    x = torch.rand(4, 4, device="openreg")
    sentence = "could not find kernel for HigherOrderOperator cond at dispatch key"
    with pytest.raises(NotImplementedError, match=f"{sentence} DispatchKey.AutocastPrivateUse1"):
        with low("openreg"):
            cond(x.sum() > 0, lambda x: (x,), lambda x: (x + 1,), (x,))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(8, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.out = torch.nn.Linear(16, 4)

    def forward(self, x):
        with low("openreg"):
            hidden = self.norm(torch.relu(self.hidden(x)))
            with low("openreg", enabled=False):
                exact = self.out(hidden.to(torch.float32))
            scores = self.out(hidden)
            with torch.no_grad():
                winner = torch.cond(
                    scores.sum() > 0, lambda s: s.argmax(1), lambda s: s.argmin(1), (scores,)
                )
        return scores, hidden, exact, winner


def test_a_model_is_saved_loaded_and_run_on_the_device_with_the_types_of_eager():
    torch.manual_seed(0)
    model = Classifier().to("openreg")
    x = torch.randn(3, 8, device="openreg")
    program = loaded(exported(model, x))
    (region,) = outline(program.graph_module)
    assert region[0] == autocast(device="openreg")
    got, expected = program.module()(x), model(x)
    assert [out.dtype for out in got] == [BF16, torch.float32, torch.float32, torch.int64]
    for one, other in zip(got, expected, strict=True):
        assert one.device == other.device == torch.device("openreg:0")
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=0, atol=0)
    assert (got[0].requires_grad, got[3].requires_grad) == (True, False)


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_a_program_knows_the_types_of_the_device_that_it_was_traced_on(device):
    from torch.export.passes import move_to_device_pass

    def function(self, x):
        with low("openreg"):
            y = self.layer(x)
        return y.float() + 1

    model, x = Model(function, layer=torch.nn.Linear(4, 4)).to(device), torch.ones(2, 4)
    program = exported(model, x.to(device))
    for moved in (program.module().to("openreg"), move_to_device_pass(program, "openreg").module()):
        if device == "openreg":
            assert moved(x.to("openreg")).dtype == torch.float32
        else:
            with pytest.raises(RuntimeError, match="Expected: Float, Got: c10::BFloat16"):
                moved(x.to("openreg"))
