# SPDX-License-Identifier: BSD-3-Clause
"""What the pass makes of a graph."""

import copy
import subprocess
import sys

import pytest
import torch
from outline import BF16, NO_GRAD, autocast, outline, traced
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch_openreg.export import replace_autocast_with_hop_pass

ENTER = torch.amp.autocast_mode._enter_autocast
EXIT = torch.amp.autocast_mode._exit_autocast
SET_GRAD = torch._C._set_grad_enabled
HALF = ("cpu", BF16, True, False)


def passed(function, *inputs):
    return replace_autocast_with_hop_pass(traced(function, *inputs), None)[0]


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, 4)


def low(**settings):
    return torch.autocast("cpu", **{"dtype": BF16, **settings})


def off():
    return torch.autocast("cpu", dtype=BF16, enabled=False)


# Regions.


def test_a_region_becomes_a_call_of_its_own_graph(x):
    def function(x):
        y = x + 1
        with low():
            y = y @ y
        return y * 2

    new = passed(function, x)
    assert outline(new) == ["add", (autocast(), ["matmul"]), "mul"]
    assert torch.equal(new(x), function(x))


def test_regions_apart_are_calls_of_their_own(x):
    def function(x):
        with low():
            y = x @ x
        y = y * 2
        with low():
            y = y @ y
        return y

    new = passed(function, x)
    assert outline(new) == [(autocast(), ["matmul"]), "mul", (autocast(), ["matmul"])]


def test_a_nested_region_is_called_by_the_one_around_it(x):
    def function(x):
        with low():
            y = x @ x
            with off():
                z = x @ x
            return y @ y, z

    new = passed(function, x)
    inner = (autocast(enabled=False), ["matmul"])
    assert outline(new) == [(autocast(), ["matmul", inner, "matmul"])]
    assert [out.dtype for out in new(x)] == [BF16, torch.float32]


def test_a_nested_region_of_the_same_state_is_inlined(x):
    def function(x):
        with low():
            y = x @ x
            with low(), low():
                y = y @ x
            return y @ x

    assert outline(passed(function, x)) == [(autocast(), ["matmul"] * 3)]


def test_the_same_state_is_inlined_behind_another_one_too(x):
    def function(x):
        with low():
            with off():
                with low():
                    y = x @ x
                with off():
                    return y.float() @ x

    inner = (autocast(enabled=False), [(autocast(), ["matmul"]), "to", "matmul"])
    assert outline(passed(function, x)) == [(autocast(), [inner])]


def test_what_a_region_leaves_open_it_takes_from_the_one_around_it():
    gm = graph_of("enter", "matmul", "enter inherit", "matmul", "exit", "exit")
    assert outline(replace_autocast_with_hop_pass(gm, None)[0]) == [(autocast(), ["matmul"] * 2)]


def test_a_disabled_region_is_kept_because_its_surroundings_are_unknown(x):
    def function(x):
        with off():
            return x @ x

    new = passed(function, x)
    assert outline(new) == [(autocast(enabled=False), ["matmul"])]
    with low():
        assert new(x).dtype == torch.float32


def test_neighbours_of_the_same_state_are_merged(x):
    def function(x):
        with low():
            y = x @ x
        with low():
            z = y @ x
        return y, z

    new = passed(function, x)
    assert outline(new) == [(autocast(), ["matmul", "matmul"])]
    assert all(map(torch.equal, new(x), function(x)))


@pytest.mark.parametrize("cache", ["cached", "open"])
def test_neighbours_that_use_the_cache_stay_two(cache):
    # In one block the two gradients of the weight would be added in bfloat16.
    block = [f"enter {cache}", "matmul", "exit"]
    gm = graph_of(*block, *block)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert len(outline(new)) == 2


def test_neighbours_around_blocks_that_use_the_cache_stay_two():
    # The inner block does not empty the cache, its surroundings do.
    block = ["enter", "enter cached", "matmul", "exit", "exit"]
    assert len(outline(replace_autocast_with_hop_pass(graph_of(*block, *block), None)[0])) == 2


def test_neighbours_around_called_graphs_that_use_the_cache_stay_two(x):
    def branch(x):
        with low(cache_enabled=True):
            return x @ x

    def function(x):
        with low():
            y = torch.cond(x.sum() > 0, branch, branch, (x,))
        with low():
            return y, torch.cond(x.sum() > 0, branch, branch, (x,))

    assert len(outline(passed(function, x))) == 2


def test_gradients_of_a_weight_are_added_as_in_the_program():
    def function(weight, *inputs):
        results = []
        for x in inputs:
            with low(cache_enabled=True):
                results.append(x @ weight)
        return torch.stack(results)

    torch.manual_seed(0)
    inputs = torch.randn(16, 8, 8).unbind()
    weight = [torch.ones(8, 8).requires_grad_() for _ in range(2)]
    gm = traced(function, weight[0], *inputs)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    for each, run in zip(weight, (gm, new)):
        run(each, *inputs).float().pow(2).sum().backward()
    assert torch.equal(weight[0].grad, weight[1].grad)


def test_a_second_product_sees_the_weight_as_it_was_written():
    block = ["enter cached", "matmul", "add_", "exit"]
    gm = graph_of(*block, "enter cached", "matmul", "exit")
    new, _ = replace_autocast_with_hop_pass(gm, None)
    weight = [torch.ones(2, 2).requires_grad_() for _ in range(2)]
    with torch.no_grad():
        eager, ours = gm(weight[0]), new(weight[1])
    assert torch.equal(eager, ours)
    assert torch.equal(weight[0], weight[1])


def test_neighbours_of_different_state_are_not_merged(x):
    def function(x):
        with low():
            y = x @ x
        with low(dtype=torch.float16):
            return x @ x, y

    new = passed(function, x)
    assert outline(new) == [(autocast(), ["matmul"]), (autocast(torch.float16), ["matmul"])]


def test_regions_of_other_devices_are_kept(x):
    def function(x):
        with torch.autocast("openreg", dtype=torch.float16), low():
            with torch.autocast("openreg", dtype=torch.float16):
                return x @ x

    region = (autocast(torch.float16, device="openreg"), [(autocast(), ["matmul"])])
    assert outline(passed(function, x)) == [region]


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


def test_a_region_without_outputs_returns_nothing(x):
    def function(x):
        with low():
            x @ x
        return x + 1

    new = passed(function, x)
    assert outline(new) == [(autocast(), ["matmul"]), "add"]
    assert torch.equal(new(x), x + 1)


def test_an_empty_region_is_gone(x):
    def function(x):
        with low():
            with off():
                pass
        return x + 1

    assert outline(passed(function, x)) == ["add"]


def test_a_region_may_use_placeholders_only(x):
    def function(x, y):
        with low():
            return x @ y

    new = passed(function, x, 3 * x)
    assert outline(new) == [(autocast(), ["matmul"])]
    assert torch.equal(new(x, 2 * x), function(x, 2 * x))


def test_a_region_may_only_pass_on_what_it_is_given(x):
    def function(x, y):
        with low():
            z = y
        return z, x

    gm = traced(function, x, 2 * x)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert outline(new) == []
    assert [n.name for n in new.graph.output_node().args[0]] == ["y_1", "x_1"]


# Gradients.


def test_no_grad_inside_a_region_is_a_call_inside_it(x):
    def function(x):
        with low():
            y = x @ x
            with torch.no_grad():
                z = y @ x
            return z @ y

    new = passed(function, x)
    assert outline(new) == [(autocast(), ["matmul", (NO_GRAD, ["matmul"]), "matmul"])]


def test_a_region_inside_no_grad_is_a_call_inside_it(x):
    def function(x):
        with torch.no_grad():
            y = x + 1
            with low():
                y = y @ x
            return y * 2

    assert outline(passed(function, x)) == [(NO_GRAD, ["add", (autocast(), ["matmul"]), "mul"])]


def test_gradients_switched_on_again_inside_a_region_are_on(x):
    def function(x):
        with torch.no_grad():
            with low():
                y = x @ x
                with torch.enable_grad():
                    return y @ x

    on = ("wrap_with_set_grad_enabled True", ["matmul"])
    new = passed(function, x)
    assert outline(new) == [(NO_GRAD, [(autocast(), ["matmul", on])])]
    assert new(x.requires_grad_()).requires_grad


def test_gradients_that_stay_off_behind_a_region_are_off_there(x):
    def function(x):
        with low():
            y = x @ x
            torch._C._set_grad_enabled(False)
            y = y @ x
        y = y * 2
        torch._C._set_grad_enabled(True)
        return y @ y

    new = passed(function, x)
    region = (autocast(), ["matmul", (NO_GRAD, ["matmul"])])
    assert outline(new) == [region, (NO_GRAD, ["mul"]), "matmul"]


# Graphs in graphs.


def test_regions_in_the_branches_of_cond_become_calls(x):
    def branch(x):
        with low():
            return x @ x

    def function(x):
        return torch.cond(x.sum() > 0, branch, lambda x: x.bfloat16(), (x,))

    gm = traced(function, x)
    assert "_enter_autocast" in str(gm.true_graph_0.graph)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert outline(new)[-1] == ("cond", [(autocast(cache=None), ["matmul"])], ["to"])
    assert torch.equal(new(x.abs()), gm(x.abs()))


def test_a_branch_takes_the_mode_of_gradients_from_its_call(x):
    def branch(x):
        with torch.enable_grad():
            return x * 2

    def function(x):
        with torch.no_grad():
            return torch.cond(x.sum() > 0, branch, lambda x: x + 1, (x,))

    on = [("wrap_with_set_grad_enabled True", ["mul"])]
    (region,) = outline(passed(function, x))
    assert region == (NO_GRAD, ["sum", "gt", ("cond", on, ["add"])])


@pytest.mark.parametrize("first", [True, False])
def test_a_graph_that_is_called_in_both_modes_of_gradients_becomes_two(first):
    inner = torch.fx.Graph()
    a = inner.placeholder("a")
    inner.call_function(SET_GRAD, (True,))
    product = inner.call_function(torch.ops.aten.mul.Tensor, (a, a))
    inner.call_function(SET_GRAD, (False,))
    inner.output(product)
    graph = torch.fx.Graph()
    x, calls = graph.placeholder("x"), []
    for enabled in (first, not first):
        graph.call_function(SET_GRAD, (enabled,))
        calls.append(graph.call_module("body", (x,)))
    graph.call_function(SET_GRAD, (True,))
    graph.output(tuple(calls))
    gm = torch.fx.GraphModule({"body": torch.fx.GraphModule({}, inner)}, graph)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    x = torch.ones(2, requires_grad=True)
    assert [out.requires_grad for out in new(x)] == [out.requires_grad for out in gm(x)]


def test_modules_that_are_called_are_worked_through(x):
    def function(x):
        with low():
            return x @ x

    inner = traced(function, x)
    graph = torch.fx.Graph()
    graph.output(graph.call_module("inner.deep", (graph.placeholder("x"),)))
    holder = torch.nn.Module()
    holder.deep = inner
    gm = torch.fx.GraphModule({"inner.deep": inner}, graph)
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert outline(new.inner.deep) == [(autocast(), ["matmul"])]
    assert torch.equal(new(x), function(x))


def test_a_tensor_of_the_graph_is_handed_to_the_region(x):
    gm = traced(lambda x, w: x @ w, x, x + 1)
    (weight,) = (n for n in gm.graph.nodes if n.name == "w_1")
    with gm.graph.inserting_before(weight):
        gm.weight = torch.nn.Parameter(x + 1)
        weight.replace_all_uses_with(gm.graph.get_attr("weight"))
    gm.graph.erase_node(weight)
    wrap(gm, "matmul")
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert new.weight is gm.weight
    assert len(new.autocast_graph_0.graph.find_nodes(op="placeholder")) == 2
    assert torch.equal(new(x), gm(x))


# Effects.


def wrap(gm, name):
    """Writes an enter before the node of this name, and its exit behind it."""
    (node,) = (n for n in gm.graph.nodes if n.name == name)
    with gm.graph.inserting_before(node):
        enter = gm.graph.call_function(ENTER, HALF)
    with gm.graph.inserting_after(node):
        gm.graph.call_function(EXIT, (enter,))
    gm.recompile()


def after_removal_of_dead_code(gm):
    gm = copy.deepcopy(gm)
    gm.graph.eliminate_dead_code()
    return outline(gm)


def test_a_write_in_a_region_in_a_region_stays(x):
    def function(x, log, other):
        with torch.no_grad():
            with low():
                y = x @ x
                log.add_(y)
            other.add_(y)
        return x + 1

    new = passed(function, x, x + 1, x + 2)
    (region,) = after_removal_of_dead_code(new)[:1]
    assert region == (NO_GRAD, [(autocast(), ["matmul", "add_"]), "add_"])


def test_one_anchor_is_enough_for_a_region_in_a_region(x):
    def function(x, log):
        with torch.no_grad(), low():
            log.add_(x)
        return x + 1

    region = (NO_GRAD, [(autocast(), ["add_"])])
    assert outline(passed(function, x, x + 1)) == [region, "_assert_tensor_metadata", "add"]


def test_a_write_in_a_graph_that_is_called_in_a_region_stays(x):
    def function(x, log):
        with torch.no_grad():
            log.add_(x)
        return x + 1

    gm = passed(function, x, x + 1)
    gm.graph.eliminate_dead_code()
    for node in gm.graph.find_nodes(
        op="call_function", target=torch.ops.aten._assert_tensor_metadata.default
    ):
        gm.graph.erase_node(node)
    wrap(gm, "wrap_with_set_grad_enabled_0")
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert (autocast(), [(NO_GRAD, ["add_"])]) in after_removal_of_dead_code(new)


# What is kept, and what is not touched.


def test_what_is_known_of_the_graph_is_kept(x):
    def function(x):
        with low():
            return x @ x

    gm = traced(function, x)
    gm.graph.set_codegen(torch.fx.graph.CodeGen())
    gm.meta["custom"] = "mine"
    gm.training = False
    new, _ = replace_autocast_with_hop_pass(gm, None)
    assert new.graph._codegen is gm.graph._codegen
    assert (new.meta["custom"], new.training) == ("mine", False)


def test_without_regions_graph_and_signature_are_returned_as_they_are(x):
    gm, signature = traced(lambda x: x + 1, x), object()
    assert replace_autocast_with_hop_pass(gm, signature) == (gm, signature)


def test_what_is_given_is_not_changed(x):
    def branch(x):
        with low():
            return x @ x

    def function(x):
        with low():
            return torch.cond(x.sum() > 0, branch, branch, (x,))

    gm = traced(function, x)
    before = gm.print_readable(print_output=False), copy.deepcopy(gm.meta)
    assert replace_autocast_with_hop_pass(gm, None)[0] is not gm
    assert (gm.print_readable(print_output=False), gm.meta) == before


def test_a_second_time_there_is_nothing_to_do(x):
    def function(x):
        with low(), torch.no_grad():
            return x @ x

    new = passed(function, x)
    assert replace_autocast_with_hop_pass(new, None)[0] is new


def test_calls_know_where_they_came_from(x):
    class Model(torch.nn.Module):
        def forward(self, x):
            with low():
                return x @ x, x + 1

    from torch_openreg.export import use_our_pass

    with use_our_pass():
        program = torch.export.export(Model(), (x,))
    (call,) = program.graph.find_nodes(
        op="call_function", target=torch.ops.higher_order.wrap_with_autocast
    )
    assert [value.dtype for value in call.meta["val"]] == [BF16, torch.float32]
    assert "Model" in str(call.meta["nn_module_stack"])
    assert "with low():" in call.meta["stack_trace"]
    assert call.meta["torch_fn"][0] == "wrap_with_autocast"


# The signature.


def signature_of(inputs, outputs):
    return ExportGraphSignature(
        [InputSpec(InputKind.USER_INPUT, TensorArgument(name), None) for name in inputs],
        [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name), None) for name in outputs],
    )


def test_the_signature_names_the_nodes_of_the_new_graph(x):
    def function(x):
        with low():
            return (x @ x,)

    given = signature_of(["x_1"], ["of_another_graph"])
    gm, mended = replace_autocast_with_hop_pass(traced(function, x), given)
    assert mended.user_inputs == ("x_1",)
    assert mended.user_outputs == ("matmul",) == (gm.graph.output_node().args[0][0].name,)
    assert given.user_outputs == ("of_another_graph",)


def test_a_signature_of_another_graph_is_refused(x):
    def function(x):
        with low():
            return x @ x, x

    with pytest.raises(ValueError, match="The signature has 1 outputs and the graph 2"):
        replace_autocast_with_hop_pass(traced(function, x), signature_of(["x_1"], ["matmul"]))


# What is refused.


def graph_of(*steps):
    """A graph written by hand, for what tracing never records: `exit 1` exits the second enter."""
    graph = torch.fx.Graph()
    x = value = graph.placeholder("x")
    entered = []
    settings = {
        "enter": HALF,
        "enter inherit": ("cpu",),
        "enter cached": (*HALF[:3], True),
        "enter open": (*HALF[:3], None),
    }
    for step in steps:
        if step.startswith("enter"):
            entered.append(graph.call_function(ENTER, settings[step]))
        elif step == "exit":
            graph.call_function(EXIT, (entered.pop(),))
        elif step.startswith("exit"):
            graph.call_function(EXIT, (entered[int(step.split()[1])],))
        elif step == "matmul":
            value = graph.call_function(torch.ops.aten.matmul.default, (x, x))
        else:
            graph.call_function(torch.ops.aten.add_.Tensor, (x, 1))
    graph.output(value)
    return torch.fx.GraphModule({}, graph)


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (
            ["enter", "matmul"],
            "The graph ends while _enter_autocast is open; give each _enter_autocast its"
            " _exit_autocast.",
        ),
        (
            ["enter", "enter", "matmul"],
            "The graph ends while _enter_autocast, _enter_autocast_1 are open; give each",
        ),
        (
            ["enter", "exit 0", "matmul", "exit 0"],
            "_exit_autocast_1 exits _enter_autocast, which is not open; none is open.",
        ),
        (
            ["enter", "enter", "exit 1", "exit 1", "exit 0"],
            "_exit_autocast_1 exits _enter_autocast_1, which is not open; the innermost that is"
            " open is _enter_autocast.",
        ),
        (
            ["enter", "enter", "matmul", "exit 0", "exit 1"],
            "_exit_autocast exits _enter_autocast while _enter_autocast_1, entered inside it, is"
            " open; exit _enter_autocast_1 first.",
        ),
    ],
)
def test_unbalanced_and_interleaved_regions_are_refused_by_name(steps, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace_autocast_with_hop_pass(graph_of(*steps), None)


def test_import_torch_does_not_import_the_pass():
    program = "import sys, torch; print([m for m in sys.modules if 'torch_openreg.export' in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
