# SPDX-License-Identifier: BSD-3-Clause
"""Change: which path an operator takes when all its registrations at our key are left out."""

PREDICTED = {
    # Structured: PyTorch derives them from their `.out` forms, which are still ours.
    "add.Tensor": "composite",
    "mm": "composite",
    # That form itself is derived from nothing, and the CPU has it. So have these.
    "mm.out": "fallback",
    "relu": "fallback",
    "abs.out": "fallback",
    # Its result aliases an argument.
    "view": "refused",
    # No tensor among its arguments, and no default.
    "tril_indices": "refused",
    # Tagged as drawing random numbers.
    "native_dropout": "refused",
    # The default of this one exists, and is an error.
    "convolution_overrideable": "composite",
    # Nobody but us has a kernel.
    "record_stream": "missing",
}
