# SPDX-License-Identifier: BSD-3-Clause
"""Graphs for the export pass: traced, or written by hand."""

import inspect

import torch
from outline import BF16, outline
from torch.fx.experimental.proxy_tensor import make_fx
from torch_openreg.export import replace_autocast_with_hop_pass

ENTER = torch.amp.autocast_mode._enter_autocast
EXIT = torch.amp.autocast_mode._exit_autocast
SET_GRAD = torch._C._set_grad_enabled
HALF = ("cpu", BF16, True, False)


def traced(function, *inputs):
    """The graph in which `torch.export` would find `function`, before the passes."""
    return make_fx(function, pre_dispatch=True)(*inputs)


def passed(function, *inputs):
    return replace_autocast_with_hop_pass(traced(function, *inputs), None)[0]


def outlined(expected, dtypes=None):
    """Makes a test of a program: behind the pass it has this outline and, with other inputs than it was
    traced with, the results of the program."""

    def decorate(program):
        def test(x):
            given = [(n + 1) * x for n, _ in enumerate(inspect.signature(program).parameters)]
            new = passed(program, *given)
            assert outline(new) == expected
            given = [-each for each in given]
            found = new(*given)
            torch.testing.assert_close(found, program(*given), rtol=0, atol=0)
            assert dtypes in (None, [each.dtype for each in found])

        return test

    return decorate


def low(device="cpu", **settings):
    return torch.autocast(device, **{"dtype": BF16, **settings})


def off():
    return torch.autocast("cpu", dtype=BF16, enabled=False)


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


def wrap(gm, name):
    """Writes an enter before the node of this name, and its exit behind it."""
    (node,) = (n for n in gm.graph.nodes if n.name == name)
    with gm.graph.inserting_before(node):
        enter = gm.graph.call_function(ENTER, HALF)
    with gm.graph.inserting_after(node):
        gm.graph.call_function(EXIT, (enter,))
    gm.recompile()
