# SPDX-License-Identifier: BSD-3-Clause
"""Models for `torch.export`, and the forms of the program that it makes."""

import io
from contextlib import nullcontext

import pytest
import torch
from torch_openreg.export import use_our_pass

strictness = pytest.mark.parametrize("strict", [False, True], ids=["non-strict", "strict"])


class Model(torch.nn.Module):
    """A model whose forward is the function given; `self` is its first argument."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def exported(model, *inputs, by="us", **settings):
    with use_our_pass() if by == "us" else nullcontext():
        return torch.export.export(model, inputs, **settings)


def loaded(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def forms_of(program):
    """The program as it is, after saving and loading, and after decomposition."""
    return [program, loaded(program), program.run_decompositions({})]


def gradient(function, x):
    x = x.clone().requires_grad_()
    function(x).sum().backward()
    return x.grad
