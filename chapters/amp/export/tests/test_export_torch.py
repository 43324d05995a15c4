# SPDX-License-Identifier: BSD-3-Clause
"""Inside `torch.export`: what PyTorch's pass loses, and ours keeps.

Where a test says what PyTorch 2.13 does wrong, its failure is news: PyTorch has been repaired.
"""

import pytest
import torch
from graphs import low
from outline import NO_GRAD, autocast, outline
from programs import Model, exported, forms_of, gradient, loaded, strictness
from torch_openreg.export import replace_autocast_with_hop_pass


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
