# SPDX-License-Identifier: BSD-3-Clause
"""Models that live on the device leave it as ONNX, and compute elsewhere what they computed here."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import onnxruntime
import pytest
import torch
from torch import nn

PROGRAM = Path(__file__).resolve().parents[2] / "docs/onnx_export.py"


def exported(model, *inputs, **options):
    """What onnxruntime computes, what the model computes on the device, and the operators between."""
    model = model.eval().to("openreg")
    inputs = [value.to("openreg") for value in inputs]
    with torch.no_grad():
        wanted = model(*inputs).cpu()
    program = torch.onnx.export(model, tuple(inputs), dynamo=True, verbose=False, **options)
    whole = program.model_proto
    session = onnxruntime.InferenceSession(
        whole.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    named = zip(session.get_inputs(), inputs, strict=True)
    (found,) = session.run(None, {each.name: value.cpu().numpy() for each, value in named})
    return torch.from_numpy(found), wanted, [node.op_type for node in whole.graph.node]


class Words(nn.Module):
    """Embedding, attention, and a sum over the words."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, words):
        x = self.embed(words) + torch.arange(words.shape[1], device=words.device)[:, None]
        return self.attend(x, x, x)[0].sum(1)


class Steps(nn.Module):
    """A recurrent model; its result is the last state."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0][:, -1]


MODELS = {
    "convolution": (
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)),
        torch.randn(2, 1, 8, 8),
    ),
    "attention": (Words(), torch.randint(10, (2, 5))),
    "recurrent": (Steps(), torch.randn(2, 5, 8)),
}


@pytest.mark.parametrize(("model", "value"), MODELS.values(), ids=MODELS)
@pytest.mark.filterwarnings("ignore")
def test_an_exported_model_computes_elsewhere_what_it_computed_on_the_device(model, value):
    found, wanted, operators = exported(model, value)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert operators


@pytest.mark.filterwarnings("ignore")
def test_half_precision_is_kept():
    found, wanted, _ = exported(nn.Linear(8, 8).half(), torch.randn(2, 8).half())
    assert found.dtype == wanted.dtype == torch.float16
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore")
def test_autocast_becomes_casts_of_the_graph():
    layer = nn.Linear(8, 8).to("openreg")

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            with torch.autocast("openreg", torch.bfloat16):
                return self.layer(x)

    x = torch.randn(2, 8, device="openreg")
    program = torch.onnx.export(Mixed(), (x,), dynamo=True, verbose=False)
    assert [node.op_type for node in program.model_proto.graph.node] == ["Cast", "Gemm"]


def test_the_program_of_the_page_prints_what_the_page_shows():
    env = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PROGRAM.with_suffix(".txt").read_text()


def test_a_tensor_of_the_device_must_be_copied_before_onnxruntime_can_read_it():
    with pytest.raises(TypeError, match="can't convert openreg:0 device type tensor to numpy"):
        numpy.asarray(torch.ones(2, device="openreg"))
