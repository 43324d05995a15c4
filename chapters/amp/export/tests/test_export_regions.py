# SPDX-License-Identifier: BSD-3-Clause
"""Which regions the pass finds, inlines, merges and keeps."""

import torch
from graphs import graph_of, low, off, outlined, passed, traced
from outline import BF16, autocast, outline
from torch_openreg.export import replace_autocast_with_hop_pass

LOW, OFF, FLOAT16 = autocast(), autocast(enabled=False), autocast(torch.float16)


@outlined(["add", (LOW, ["matmul"]), "mul"])
def test_a_region_becomes_a_call_of_its_own_graph(x):
    y = x + 1
    with low():
        y = y @ y
    return y * 2


@outlined([(LOW, ["matmul"]), "mul", (LOW, ["matmul"])])
def test_regions_apart_are_calls_of_their_own(x):
    with low():
        y = x @ x
    y = y * 2
    with low():
        y = y @ y
    return y


@outlined([(LOW, ["matmul", (OFF, ["matmul"]), "matmul"])], [BF16, torch.float32])
def test_a_nested_region_is_called_by_the_one_around_it(x):
    with low():
        y = x @ x
        with off():
            z = x @ x
        return y @ y, z


@outlined([(LOW, ["matmul"] * 3)])
def test_a_nested_region_of_the_same_state_is_inlined(x):
    with low():
        y = x @ x
        with low(), low():
            y = y @ x
        return y @ x


@outlined([(LOW, [(OFF, [(LOW, ["matmul"]), "to", "matmul"])])])
def test_the_same_state_is_inlined_behind_another_one_too(x):
    with low():
        with off():
            with low():
                y = x @ x
            with off():
                return y.float() @ x


def test_what_a_region_leaves_open_it_takes_from_the_one_around_it():
    gm = graph_of("enter", "matmul", "enter inherit", "matmul", "exit", "exit")
    assert outline(replace_autocast_with_hop_pass(gm, None)[0]) == [(LOW, ["matmul"] * 2)]


def test_a_disabled_region_is_kept_because_its_surroundings_are_unknown(x):
    def function(x):
        with off():
            return x @ x

    new = passed(function, x)
    assert outline(new) == [(OFF, ["matmul"])]
    with low():
        assert new(x).dtype == torch.float32


@outlined([(LOW, ["matmul", "matmul"])])
def test_neighbors_of_the_same_state_are_merged(x):
    with low():
        y = x @ x
    with low():
        z = y @ x
    return y, z


@outlined([(LOW, ["matmul"]), (FLOAT16, ["matmul"])])
def test_neighbors_of_different_state_are_not_merged(x):
    with low():
        y = x @ x
    with low(dtype=torch.float16):
        return x @ x, y


@outlined([(autocast(torch.float16, device="openreg"), [(LOW, ["matmul"])])])
def test_regions_of_other_devices_are_kept(x):
    with torch.autocast("openreg", dtype=torch.float16), low():
        with torch.autocast("openreg", dtype=torch.float16):
            return x @ x


def test_several_outputs_keep_their_names(x):
    def function(x):
        with low():
            a = x @ x
            b = a @ x
        return b + 1, a, b

    gm = traced(function, x)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert [n.name for n in new.graph.output_node().args[0]] == ["add", "matmul", "matmul_1"]
    assert all(map(torch.equal, new(x), gm(x)))


@outlined([(LOW, ["matmul"]), "add"])
def test_a_region_without_outputs_returns_nothing(x):
    with low():
        x @ x
    return x + 1


@outlined(["add"])
def test_an_empty_region_is_gone(x):
    with low():
        with off():
            pass
    return x + 1


@outlined([(LOW, ["matmul"])])
def test_a_region_may_use_placeholders_only(x, y):
    with low():
        return x @ y


def test_a_region_may_only_pass_on_what_it_is_given(x):
    def function(x, y):
        with low():
            z = y
        return z, x

    gm = traced(function, x, 2 * x)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert outline(new) == []
    assert [n.name for n in new.graph.output_node().args[0]] == ["y_1", "x_1"]
