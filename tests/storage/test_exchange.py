# SPDX-License-Identifier: BSD-3-Clause
"""Tensors for other libraries: the table on the page Minimal is what PyTorch does with ours."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack, to_dlpack

with Path(__file__).with_name("exchange.csv").open() as file:
    ROWS = [(run.strip("`"), end.strip("`")) for run, end in list(csv.reader(file))[1:]]


@pytest.mark.filterwarnings("ignore:__array__ implementation")
@pytest.mark.parametrize(("program", "end"), ROWS)
def test_an_exchange_ends_as_the_page_says(program, end):
    names = {"torch": torch, "np": np, "from_dlpack": from_dlpack, "to_dlpack": to_dlpack}
    try:
        said = str(eval(program, names | {"x": torch.arange(2.0, device="openreg")}))
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    assert re.fullmatch(re.escape(end).replace("…", ".*"), said), said


def test_what_is_written_through_a_capsule_is_written_in_the_tensor():
    x = torch.zeros(4, device="openreg")[1:3]
    from_dlpack(to_dlpack(x)).add_(1)
    assert x.tolist() == [1, 1]


def test_a_capsule_keeps_the_memory_of_its_tensor():
    held = torch.openreg.memory_allocated()
    capsule = to_dlpack(torch.ones(1 << 20, device="openreg"))
    assert torch.openreg.memory_allocated() > held
    assert from_dlpack(capsule).sum().item() == 1 << 20
    del capsule
    assert torch.openreg.memory_allocated() == held
