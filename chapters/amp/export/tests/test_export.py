# SPDX-License-Identifier: BSD-3-Clause
"""What the pass keeps of a graph and its signature, and what it refuses."""

import copy

import pytest
import torch
from graphs import graph_of, low, passed, traced
from outline import BF16
from running import printed
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch_openreg.export import replace_autocast_with_hop_pass, use_our_pass


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

    with use_our_pass():
        program = torch.export.export(Model(), (x,))
    (call,) = program.graph.find_nodes(
        op="call_function", target=torch.ops.higher_order.wrap_with_autocast
    )
    assert [value.dtype for value in call.meta["val"]] == [BF16, torch.float32]
    assert "Model" in str(call.meta["nn_module_stack"])
    assert "with low():" in call.meta["stack_trace"]
    assert call.meta["torch_fn"][0] == "wrap_with_autocast"


def test_import_torch_does_not_import_the_pass():
    program = "import sys, torch; print([m for m in sys.modules if 'torch_openreg.export' in m])"
    assert printed(program) == "[]\n"


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


@pytest.mark.parametrize(("steps", "sentence"), [
    (["enter", "matmul"],
     "The graph ends while _enter_autocast is open; give each _enter_autocast its"
     " _exit_autocast."),
    (["enter", "enter", "matmul"],
     "The graph ends while _enter_autocast, _enter_autocast_1 are open; give each"),
    (["enter", "exit 0", "matmul", "exit 0"],
     "_exit_autocast_1 exits _enter_autocast, which is not open; none is open."),
    (["enter", "enter", "exit 1", "exit 1", "exit 0"],
     "_exit_autocast_1 exits _enter_autocast_1, which is not open; the innermost that is"
     " open is _enter_autocast."),
    (["enter", "enter", "matmul", "exit 0", "exit 1"],
     "_exit_autocast exits _enter_autocast while _enter_autocast_1, entered inside it, is"
     " open; exit _enter_autocast_1 first."),
])  # fmt: skip
def test_unbalanced_and_interleaved_regions_are_refused_by_name(steps, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace_autocast_with_hop_pass(graph_of(*steps), None)
