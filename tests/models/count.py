# SPDX-License-Identifier: BSD-3-Clause
"""Counts the kernels that the models need, and writes operators.csv.

.venv/bin/meson devenv -C build -w . .venv/bin/python tests/models/count.py
"""

import collections
import csv
import pathlib

import conftest  # noqa: F401
from programs import MODELS, make, train
from torch_openreg import _C, dispatch

TABLE = pathlib.Path(__file__).with_name("operators.csv")


def family(operator):
    """What `mul.Tensor`, `mul_.Scalar` and `mul.out` have in common: `mul`."""
    name = operator.removeprefix("aten::").partition(".")[0]
    return name if name.startswith("__") else name.rstrip("_")


def kernels_of(name):
    """How often a model calls each kernel in three steps. Of an operator's forms, which call each
    other, the one with the most calls counts."""
    model, given = make(name)
    _C.start_trace()
    train(model, given, "openreg")
    calls = collections.Counter()
    for operator, (direct, inner) in _C.stop_trace().items():
        if dispatch.path_of(operator)[0] in ("native", "library", "fallback"):
            calls[family(operator)] = max(calls[family(operator)], direct + inner)
    return calls


def rows():
    """Operator, models that call it, calls: those that most models need come first."""
    models, calls = collections.Counter(), collections.Counter()
    for name in MODELS:
        found = kernels_of(name)
        models.update(found.keys())
        calls.update(found)
    return sorted(
        ((name, models[name], calls[name]) for name in models),
        key=lambda row: (-row[1], -row[2], row[0]),
    )


if __name__ == "__main__":
    with TABLE.open("w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([("Operator", "Models", "Calls"), *rows()])
