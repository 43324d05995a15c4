# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest: tensors are made on ECOSYSTEM_DEVICE, and no test takes longer than two minutes."""

import os
import signal

import pytest
import torch

SECONDS = 120

torch.set_default_device(os.environ["ECOSYSTEM_DEVICE"])

# torchvision, which some libraries import, describes these two operators of its own library, and
# that library needs a PyTorch with CUDA.
detection = torch.library.Library("torchvision", "FRAGMENT")
for name in () if torch.version.cuda else ("nms", "qnms"):
    detection.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def too_long(*_):
    raise TimeoutError(f"The test took longer than {SECONDS} s.")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol():
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
