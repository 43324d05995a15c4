# SPDX-License-Identifier: BSD-3-Clause
"""Counts the operators that reach openreg while the models learn, and writes operators.csv.

.venv/bin/meson devenv -C build -w . .venv/bin/python tests/models/count.py
"""

import collections
import csv
import pathlib

import conftest  # noqa: F401
import torch
from programs import MODELS, make
from test_models import train
from torch_openreg import _C, dispatch


def main():
    models, calls = collections.Counter(), collections.Counter()
    for name in MODELS:
        model, given = make(name)
        _C.start_trace()
        train(model, given, "openreg")
        counts = _C.stop_trace()
        print(name, len(counts))
        for operator, count in counts.items():
            models[operator] += 1
            calls[operator] += sum(count)
    file = pathlib.Path(__file__).with_name("operators.csv")
    with file.open("w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["Operator", "Path", "Models", "Calls"])
        for operator in sorted(models, key=lambda name: (-models[name], -calls[name], name)):
            path = dispatch.path_of(operator)[0]
            table.writerow([operator, path, models[operator], calls[operator]])


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
