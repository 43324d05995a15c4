# SPDX-License-Identifier: BSD-3-Clause
import torch
from ambient_export import export
from inlined_branches import inline_branches
from operators_by_mode import operators_by_mode
from torch.fx.experimental.proxy_tensor import make_fx
from torch_openreg.export import replace_autocast_with_hop_pass


def low(dtype=torch.bfloat16):
    return torch.autocast("cpu", dtype=dtype)


def test_operators_are_counted_by_mode():
    def function(x):
        y = x + 1
        with low():
            with torch.no_grad():
                y = y @ y
            with low():
                return y @ y @ y

    gm = make_fx(function, pre_dispatch=True)(torch.eye(2))
    region = "cpu torch.bfloat16 True False"
    assert operators_by_mode(gm) == {(): 1, (region, "False"): 1, (region,): 2}


def branches(inner):
    def branch(x):
        with low(inner):
            return x @ x

    def function(x):
        with low():
            return torch.cond(x.sum() > 0, branch, lambda x: x.to(inner), (x,))

    x = torch.ones(2, 2) / 3
    gm = make_fx(function, pre_dispatch=True)(x)
    gm, _ = replace_autocast_with_hop_pass(gm, None)
    return gm, inline_branches(gm), x


def regions_in(gm):
    text = gm.print_readable(print_output=False)
    return text.count("higher_order.wrap_with_autocast(")


def test_a_branch_does_not_repeat_the_region_around_it():
    given, inlined, x = branches(torch.bfloat16)
    assert (regions_in(given), regions_in(inlined)) == (2, 1)
    assert torch.equal(inlined(x), given(x))


def test_a_branch_with_another_region_keeps_it():
    given, inlined, x = branches(torch.float16)
    assert (regions_in(given), regions_in(inlined)) == (2, 2)
    assert torch.equal(inlined(x), given(x))


def test_a_program_exported_inside_a_block_contains_it():
    layer, x = torch.nn.Linear(4, 4).to("openreg"), torch.ones(2, 4, device="openreg")
    with torch.autocast("openreg", dtype=torch.bfloat16):
        program = export(layer, (x,))
        inside = layer(x)
    outside = program.module()(x)
    assert outside.dtype == torch.bfloat16 != layer(x).dtype
    assert torch.equal(outside.cpu(), inside.cpu())


def test_a_program_exported_outside_contains_no_block():
    program = export(torch.nn.Linear(4, 4), (torch.ones(2, 4),))
    assert regions_in(program.graph_module) == 0
