# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small convolutional network on handwritten digits: on the CPU, on tiny, in bfloat16."""

import sys
import tempfile
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy


# [first.digits.data] The digits are real, 1797 of 8 by 8 pixels; every third one is held out.
def load():
    """Images and labels to learn from, then images and labels to be judged by."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    held_out = torch.arange(len(labels)) % 3 == 0
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def build():
    """The network, with the same weights each time."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 10),
    )  # fmt: skip


# [first.digits.train] Nothing here knows of our device but the word in `device`.
def train(device, dtype, epochs):
    """The network after some epochs on `device`; below float32, under autocast."""
    images, labels, _, _ = load()
    model = build().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels), generator=order).split(64):
            with torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32):
                scores = model(images[batch].to(device))
                loss = cross_entropy(scores, labels[batch].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


# [first.digits.check] The network is judged after it was saved, and loaded again.
def accuracy(model, device):
    """The share of held-out digits that the saved and reloaded network gets right."""
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), Path(folder, "digits.pt"))
        weights = torch.load(Path(folder, "digits.pt"))
    model = build().to(device).eval()
    model.load_state_dict(weights)
    _, _, images, labels = load()
    with torch.no_grad():
        guesses = model(images.to(device)).cpu().argmax(1)
    return (guesses == labels).double().mean().item()


# [first.digits.main] The table, and then what our device left to the CPU.
def main():
    torch.set_num_threads(1)
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    print("device  dtype      held-out digits  seconds")
    for device, dtype in (("cpu", "float32"), ("tiny", "float32"), ("tiny", "bfloat16")):
        began = time.monotonic()
        model = train(device, getattr(torch, dtype), epochs)
        seconds = time.monotonic() - began
        print(f"{device:<8}{dtype:<11}{accuracy(model, device):>15.1%}{seconds:>9.1f}", flush=True)
    print("\nfell back to the CPU:")
    for name, count in torch.tiny.fallback_report().items():
        print(f"{count:>7}  {name}")


if __name__ == "__main__":
    main()

# [-]
