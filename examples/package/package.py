# SPDX-License-Identifier: BSD-3-Clause
"""Compiles a model ahead of time, for a program without Python: `python package.py FOLDER`."""

import pathlib
import sys

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.scores = nn.Linear(8 * 13 * 13, 10)

    def forward(self, images):
        with torch.autocast("openreg", dtype=torch.bfloat16):
            features = self.features(images)
        return self.scores(features.float().flatten(1)).softmax(1)


folder = pathlib.Path(sys.argv[1])
torch.manual_seed(0)
model = Classifier().to("openreg").eval()
images = torch.rand(4, 1, 28, 28, device="openreg")
batch = {"images": {0: torch.export.Dim("batch")}}
torch._inductor.aoti_compile_and_package(
    torch.export.export(model, (images,), dynamic_shapes=batch),
    package_path=str(folder / "model.pt2"),
    inductor_configs={"aot_inductor.package_constants_in_so": False},
)
weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
torch.save({"images": images.cpu(), **weights}, folder / "weights.pt")
with torch.no_grad():
    print(model(images).argmax(1).tolist())
