# SPDX-License-Identifier: BSD-3-Clause
"""Profiles some steps of the digit classifier of `digits.py`, and writes a trace of them.

The table says which kernels take the device's time. The trace shows when: open it in
https://ui.perfetto.dev or in chrome://tracing, which both work without sending it anywhere.
"""

import argparse
import os

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # Before the import: two lines of log less.

import torch
from digits import BATCH, build_model, load
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile, record_function, schedule

ACTIVITIES = (ProfilerActivity.CPU, ProfilerActivity.PrivateUse1)


def train(device, steps, log_every, after_each):
    """Trains for some steps; the parts of a step are marked."""
    (images, labels), _ = load()
    images, labels = images.pin_memory(), labels.pin_memory()
    model = build_model(0).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        batch = slice(step * BATCH, (step + 1) * BATCH)
        with record_function("load"):
            images_there = images[batch].to(device, non_blocking=True)
            labels_there = labels[batch].to(device, non_blocking=True)
        with record_function("forward"):
            loss = cross_entropy(model(images_there), labels_there)
        with record_function("backward"):
            optimizer.zero_grad()
            loss.backward()
        with record_function("update"):
            optimizer.step()
        if log_every and step % log_every == 0:
            with record_function("log"):
                loss.item()  # The host waits here for the whole step.
        after_each()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="openreg")
    parser.add_argument("--trace", default="digits.json", help="where to write the trace")
    parser.add_argument("--log-every", type=int, default=1, help="steps; 0 is never")
    options = parser.parse_args()
    # The first steps start threads and fill caches, so they are left out.
    few = schedule(wait=4, warmup=2, active=3, repeat=1)
    with profile(activities=ACTIVITIES, schedule=few) as profiler:
        train(options.device, 9, options.log_every, profiler.step)
    rows = profiler.key_averages()
    print(rows.table(sort_by="self_device_time_total", row_limit=8, max_name_column_width=40))
    profiler.export_chrome_trace(options.trace)
    print(f"The trace is in {options.trace}; open it in https://ui.perfetto.dev.")


if __name__ == "__main__":
    main()
