# SPDX-License-Identifier: BSD-3-Clause
"""Inside `torch.export`: what a program computes, and what no pass can mend."""

import pytest
import torch
from graphs import low
from programs import Model, exported, forms_of, strictness
from torch_openreg.export import replace_autocast_with_hop_pass, use_our_pass


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
        torch.testing.assert_close(got, leaves(model(x)), rtol=0, atol=0)
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
