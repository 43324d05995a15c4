# SPDX-License-Identifier: BSD-3-Clause
import copy
import itertools

import pytest
import torch

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def run(module, x, device):
    """The outputs of a module on a device and its gradients, as tensors of the CPU."""
    module = copy.deepcopy(module).to(device)
    output, state = module(x.to(device))
    (output.square().sum() + sum(each.sum() for each in state)).backward()
    gradients = [each.grad for each in module.parameters()]
    return [each.detach().cpu() for each in (output, *state, *gradients)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU])
def test_a_recurrent_layer_has_the_results_and_gradients_of_the_cpu(layer, dtype):
    torch.manual_seed(0)
    x = torch.randn(3, 2, 4).to(dtype)
    for bias, bidirectional in itertools.product([True, False], repeat=2):
        module = layer(4, 5, bias=bias, bidirectional=bidirectional).to(dtype)
        with torch.openreg.fallback("error"):
            found = run(module, x, "openreg")
        near = {2: 3e-2, 4: 1e-5, 8: 1e-12}[dtype.itemsize]
        torch.testing.assert_close(found, run(module, x, "cpu"), rtol=near, atol=near)
