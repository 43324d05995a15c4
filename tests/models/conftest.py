# SPDX-License-Identifier: BSD-3-Clause
"""What must be there before the libraries are imported."""

import atexit
import os
import shutil
import tempfile

import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is downloaded: all weights are random

# Compiled kernels are kept for this run only.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="openreg-models-")
atexit.register(shutil.rmtree, os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)

# torchvision, which timm imports, describes these two operators of its own library,
# and that library needs a PyTorch with CUDA.
detection = torch.library.Library("torchvision", "FRAGMENT")
for name in () if torch.version.cuda else ("nms", "qnms"):
    detection.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
