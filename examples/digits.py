# SPDX-License-Identifier: BSD-3-Clause
"""Trains the same digit classifier on openreg and on the CPU, and compares.

The digits are real: 1797 handwritten ones of 8 by 8 pixels, which scikit-learn
carries with it. Every run starts from the same weights and sees the same batches
in the same order, so what differs is the device and the precision.
"""

import argparse
import contextlib
import sys
import time
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

BATCH = 64
LEAST_ACCURACY = 0.95  # on openreg
MOST_DIFFERENCE = 0.01  # between openreg and the CPU


@dataclass
class Run:
    device: str
    precision: str
    losses: list[float]  # one for each batch
    accuracy: float  # on the held-out digits
    seconds: float  # of training


def load():
    """Images in [0, 1] and labels: for training, and a third of them held out."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    train, held_out = train_test_split(
        range(len(labels)), test_size=1 / 3, stratify=digits.target, random_state=0
    )
    return (images[train], labels[train]), (images[held_out], labels[held_out])


def build_model(seed):
    """A small convolutional classifier. The CPU draws its weights, whatever device
    it then moves to."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )


def train(device, precision, epochs, seed):
    """Trains on `device`, in "float32" or under autocast in "bfloat16"."""
    (images, labels), held_out = load()
    model = build_model(seed).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    order = torch.Generator().manual_seed(seed)

    def lower_precision():
        if precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(device, dtype=getattr(torch, precision))

    losses = []
    began = time.perf_counter()
    # disable=None: no bar where nobody watches, as in a log.
    bar = tqdm(range(epochs), f"{device} {precision}", unit="epoch", disable=None)
    for _ in bar:
        pending = []
        for batch in torch.randperm(len(labels), generator=order).split(BATCH):
            with lower_precision():
                scores = model(images[batch].to(device))
            loss = cross_entropy(scores.float(), labels[batch].to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # To ask for the value here would wait for the device in every batch.
            pending.append(loss.detach())
        losses += [loss.item() for loss in pending]
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    seconds = time.perf_counter() - began

    with torch.no_grad(), lower_precision():
        guesses = model(held_out[0].to(device)).cpu().argmax(1)
    accuracy = (guesses == held_out[1]).double().mean().item()
    return Run(device, precision, losses, accuracy, seconds)


def table(runs):
    """The runs as lines of text."""
    lines = ["device    precision   held-out digits   seconds"]
    for run in runs:
        names = f"{run.device:<10}{run.precision:<12}"
        lines.append(f"{names}{run.accuracy:>15.1%}{run.seconds:>10.1f}")
    return "\n".join(lines)


def complaints(runs):
    """A sentence for each openreg run that is not as good as it should be."""
    sentences = []
    cpu = next((run.accuracy for run in runs if run.device == "cpu"), None)
    for run in runs:
        if run.device == "cpu":
            continue
        found = f"{run.device} in {run.precision} got {run.accuracy:.1%} right"
        if run.accuracy < LEAST_ACCURACY:
            sentences.append(f"{found}; {LEAST_ACCURACY:.0%} is the least it should.")
        if cpu is not None and abs(run.accuracy - cpu) > MOST_DIFFERENCE:
            sentences.append(
                f"{found} and the CPU {cpu:.1%}; they should differ by at most "
                f"{100 * MOST_DIFFERENCE:.0f} point."
            )
    return sentences


def draw(runs, path):
    """Writes the loss curves of the runs as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for run, style in zip(runs, ("-", "--", ":"), strict=False):
        name = f"{run.device}, {run.precision}: {run.accuracy:.1%}"
        axes.plot(run.losses, style, label=name, linewidth=1.5)
    axes.set(xlabel="batch", ylabel="cross entropy", yscale="log")
    axes.set_title("Handwritten digits: the loss of each training batch")
    axes.legend()
    figure.savefig(path, dpi=150)


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--device",
        action="append",
        choices=("cpu", "openreg"),
        help="where to train; may be repeated (default: both)",
    )
    parser.add_argument("--epochs", type=int, default=15, help="(default: 15)")
    parser.add_argument("--out", default="digits.png", help="(default: digits.png)")
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs is {options.epochs}; at least 1 is needed to learn.")
    options.device = list(dict.fromkeys(options.device or ("cpu", "openreg")))
    return options


def main(arguments=None):
    options = parse(arguments)
    if "openreg" in options.device and not hasattr(torch, "openreg"):
        return "This Python has no openreg device; `./dev demo` installs it."
    runs = []
    for device in options.device:
        precisions = ("float32",) if device == "cpu" else ("float32", "bfloat16")
        for precision in precisions:
            runs.append(train(device, precision, options.epochs, options.seed))
    print(table(runs))
    draw(runs, options.out)
    print(f"The loss curves are in {options.out}")
    return " ".join(complaints(runs)) or None


if __name__ == "__main__":
    sys.exit(main())
