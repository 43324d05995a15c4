# SPDX-License-Identifier: BSD-3-Clause
"""What must be there before the libraries are imported."""

import os

import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is downloaded: all weights are random

# torchvision, which timm imports, describes these two operators of its own library,
# and that library needs CUDA.
detection = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    detection.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
