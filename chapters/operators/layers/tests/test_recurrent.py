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


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("layer", ["GRU", "LSTM", "RNN", "RNN_relu"])
def test_a_packed_sequence_must_have_its_sizes_on_the_cpu(layer, mode):
    torch.manual_seed(0)
    name, _, kind = layer.partition("_")
    module = getattr(torch.nn, name)(3, 4, **({"nonlinearity": kind} if kind else {}))
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 3), torch.tensor([3, 2]))
    with mode():
        expected = module(packed)[0].data
        found = module.to("openreg")(packed.to("openreg"))[0].data
        torch.testing.assert_close(found.cpu(), expected)
        moved = packed._make(None if each is None else each.to("openreg") for each in packed)
        sentence = "needs batch_sizes on the CPU, where a packed sequence keeps them; they are on"
        with pytest.raises(RuntimeError, match=sentence):
            module(moved)
