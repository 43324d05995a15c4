# SPDX-License-Identifier: BSD-3-Clause
import threading

import own_rule  # noqa: F401
import pytest
import torch
from openreg_autocast import autocast


@pytest.fixture
def square():
    return torch.eye(2, device="openreg")


def test_our_context_computes_in_bfloat16_on_every_thread(square):
    types = []

    def work():
        with autocast():
            types.append((square @ square).dtype)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert types == [torch.bfloat16] * 2


def test_our_context_can_be_told_otherwise(square):
    with autocast(torch.float16):
        assert (square @ square).dtype == torch.float16
    with autocast(enabled=False):
        assert (square @ square).dtype == torch.float32


def test_our_rule_takes_the_widest_type(square):
    half = square.to(torch.bfloat16)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        assert torch.ops.mine.blend(square, half, 0.5).dtype == torch.float32
        assert torch.ops.mine.blend(half, half, 0.5).dtype == torch.bfloat16


def test_outside_autocast_there_is_no_rule(square):
    with pytest.raises(TypeError, match="two tensors of one type"):
        torch.ops.mine.blend(square, square.half(), 0.5)
