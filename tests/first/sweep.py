# SPDX-License-Identifier: BSD-3-Clause
"""Runs a part of PyTorch's operator database on tiny, and prints what differs from the CPU."""

import json
import sys

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

# Every seventh operator, without those whose results are random or undefined by design, whose
# tensors are sparse, or which read more of a storage than `to` copies.
EVERY = 7
UNCOMPARABLE = ("empty", "rand", "normal", "bernoulli", "multinomial", "dropout", "uniform", "exponential",
                "cauchy", "geometric", "log_normal", "rrelu", "fractional", "attention", "sparse",
                "partial_views")  # fmt: skip


def moved(value):
    return value.to("tiny") if isinstance(value, torch.Tensor) else value


def back(value):
    return value.cpu() if isinstance(value, torch.Tensor) else value


def compare(op):
    """Whether there was something to compare."""
    compared = False
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float32)):
        if number == 2:
            break
        try:
            expected = op(sample.input, *sample.args, **sample.kwargs)
        except Exception:
            continue
        args = tree_map(moved, (sample.input, *sample.args))
        kwargs = {**tree_map(moved, sample.kwargs)}
        kwargs |= {"device": "tiny"} if "device" in kwargs else {}
        found = op(*args, **kwargs)
        torch.testing.assert_close(
            tree_map(back, found),
            expected,
            equal_nan=True,
            check_stride=False,
            rtol=1e-4,
            atol=1e-4,
        )
        compared = True
    return compared


def main():
    torch.set_num_threads(1)
    chosen = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
    chosen = [op for op in chosen if not any(word in op.full_name for word in UNCOMPARABLE)][
        ::EVERY
    ]
    compared, wrong = 0, {}
    for op in chosen:
        print(op.full_name, file=sys.stderr, flush=True)
        try:
            compared += compare(op)
        except Exception as error:
            wrong[op.full_name] = str(error).splitlines()[0]
    print(json.dumps({"operators": len(chosen), "compared": compared, "wrong": wrong}))


if __name__ == "__main__":
    main()
