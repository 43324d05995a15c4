# SPDX-License-Identifier: BSD-3-Clause
"""Generated programs: our pass against PyTorch's, and against the program without any pass.

OPENREG_EXPORT_GRAPHS says how many programs each test draws.
"""

import copy
import os
from itertools import groupby

import torch
from graphs import ENTER, traced
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from outline import outline
from torch._export.passes.replace_autocast_with_hop_pass import (
    replace_autocast_with_hop_pass as theirs_for_autocast,
)
from torch._export.passes.replace_set_grad_with_hop_pass import (
    replace_set_grad_with_hop_pass as theirs_for_gradients,
)
from torch._higher_order_ops.cond import cond_op as cond
from torch_openreg.export import replace_autocast_with_hop_pass

GRAPHS = int(os.environ.get("OPENREG_EXPORT_GRAPHS", "100"))
many = settings(
    max_examples=GRAPHS,
    deadline=None,
    database=None,
    derandomize=GRAPHS == 100,
    suppress_health_check=list(HealthCheck),
)

# A program is a list of statements on a growing list of values; what a number refers to is
# taken modulo the length of that list, so that every program can run.
number = st.integers(0, 9)
operators = ["matmul", "add", "half", "float"]
write = st.tuples(st.just("write"), number)
setting = st.tuples(
    st.sampled_from(["cpu", "cpu", "cpu", "openreg"]),
    st.sampled_from([torch.bfloat16, torch.float16]),
    st.booleans() | st.just(True),
    st.booleans(),
)


def programs(*more, gradients_inside=True):
    """Programs of writes and operators, in regions of autocast and with gradients on and off."""
    operation = st.tuples(st.sampled_from([*operators, *more]), number, number)
    simple = st.one_of(operation, write)
    inner = outer = st.lists(simple, min_size=1, max_size=3)
    for _ in range(3):
        region = st.tuples(st.just("region"), setting, inner)
        grad_inside = [st.tuples(st.just("grad"), st.booleans(), inner)] * gradients_inside
        grad_outside = st.tuples(st.just("grad"), st.booleans(), outer)
        inner = st.lists(st.one_of(region, region, simple, *grad_inside), max_size=4)
        outer = st.lists(st.one_of(region, region, simple, grad_outside), min_size=1, max_size=4)
    return st.tuples(outer, st.lists(number, min_size=1, max_size=3), st.booleans())


def execute(statements, values, log):
    for kind, *operands in statements:
        if kind in ("region", "grad"):
            *how, body = operands
            with region(*how[0]) if kind == "region" else torch.set_grad_enabled(*how):
                execute(body, values, log)
            continue
        a, *others = (values[i % len(values)] for i in operands)
        if kind == "write":
            log.add_(a.detach())
        elif kind == "cond":
            values += cond(a.sum() > 0, through_a_region, positive, (a.float(),))
        elif kind == "matmul":
            values.append(torch.tanh(a @ others[0].to(a.dtype)))
        elif kind == "add":
            values.append(a + others[0])
        else:
            values.append(getattr(a, kind)())


def region(device, dtype, enabled, cache):
    return torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=cache)


def through_a_region(a):
    with region("cpu", torch.bfloat16, True, False):
        return ((a @ a).float(),)


def positive(a):
    return (a.relu(),)


def as_function(program):
    statements, wanted, _ = program

    def function(x, log):
        values = [x]
        execute(statements, values, log)
        return tuple(values[i % len(values)] for i in wanted)

    return function


def inputs():
    torch.manual_seed(0)
    return torch.rand(3, 3).sub_(0.3).requires_grad_(), torch.zeros(3, 3)


def trace(program):
    """The program's graph; a use of the cache is recorded as left open where the program says so."""
    gm = traced(as_function(program), *inputs())
    for node in gm.graph.find_nodes(op="call_function", target=ENTER):
        node.update_arg(3, None if program[2] and node.args[3] else node.args[3])
    gm.recompile()
    return gm


def results(function):
    """Everything that can be observed: values, types, gradients, and what was written."""
    x, log = inputs()
    outputs = function(x, log)
    loss = sum(out.float().sum() for out in outputs)
    if loss.requires_grad:
        loss.backward()
    return [*outputs, log, x.grad, [out.requires_grad for out in outputs]]


def assert_same(some, others):
    for one, other in zip(some, others, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
        else:
            assert one == other


CACHED = ("region", ("cpu", torch.bfloat16, True, True), [("matmul", 0, 0)])
three_blocks_on_one_weight = example(([CACHED] * 3, [1, 2, 3], False))


@many
@given(programs("cond"))
@three_blocks_on_one_weight
def test_the_numbers_are_those_of_the_program(program):
    gm = trace(program)
    ours, _ = replace_autocast_with_hop_pass(gm, None)
    assert "_autocast(" not in ours.print_readable(print_output=False).replace("with_autocast(", "")
    assert "_set_grad_enabled(" not in str(outline(ours))
    expected = results(gm)
    assert_same(results(ours), expected)
    assert replace_autocast_with_hop_pass(ours, None)[0] is ours
    pruned = copy.deepcopy(ours)
    pruned.graph.eliminate_dead_code()
    pruned.recompile()
    assert_same(results(pruned), expected)


def flat(lines, modes=()):
    """An outline as a list: each operator, and the modes that it runs under."""
    for line in lines:
        if isinstance(line, str):
            if line != "_assert_tensor_metadata":  # our anchor
                yield line, needed(modes)
        elif line[0].startswith("wrap_with_"):
            yield from flat(line[1], (*modes, line[0]))


def needed(modes):
    """`modes` without those that change nothing."""
    kept = []
    for mode in modes:
        what = " ".join(mode.split()[:2]) if "autocast" in mode else mode.split()[0]
        same = [other for other in kept if other.startswith(what)]
        before = same[-1] if same else "wrap_with_set_grad_enabled True"
        if mode != before:
            kept.append(mode)
    return tuple(kept)


def nested(lines, depth=0):
    """An outline again, in which neighbors under the same mode are in one region."""
    for mode, run in groupby(lines, key=lambda line: line[1][depth : depth + 1]):
        if mode:
            yield (*mode, list(nested(run, depth + 1)))
        else:
            yield from (operator for operator, _ in run)


@many
@given(programs(gradients_inside=False))
def test_the_structure_is_that_of_pytorchs_pass(program):
    gm = trace(program)
    theirs, _ = theirs_for_autocast(*theirs_for_gradients(gm, None))
    ours, _ = replace_autocast_with_hop_pass(gm, None)
    assert list(nested(flat(outline(ours)))) == list(nested(flat(outline(theirs))))
    assert_same(results(ours), results(theirs))
