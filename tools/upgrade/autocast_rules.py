# SPDX-License-Identifier: BSD-3-Clause
"""The autocast rules in the header of the installed PyTorch: the book's tables, and the drift test."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

LISTS = {
    "AT_FORALL_LOWER_PRECISION_FP": "lower_precision_fp",
    "AT_FORALL_FP32": "fp32",
    "AT_FORALL_FP32_SET_OPT_DTYPE": "fp32_set_opt_dtype",
    "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE": "fp32_append_dtype",
    "AT_FORALL_PROMOTE": "promote",
}
NO_RULES = {"AT_FORALL_DEPRECATED_AUTOCAST_BACKENDS"}
LIST = re.compile(r"^#define (AT_FORALL_\w+)\(_\)((?:.*\\\n)*.*)", re.MULTILINE)
# `_(pow, Scalar)`, or an entry that brings the operator's name as text.
ENTRY = re.compile(r'\b_\(\s*(?:(\w+)(?:,\s*(\w+))?\)|ADD_NS\(\w+\),[\s\\]*"([\w.]+)")')


def header() -> Path:
    """Where it is; PyTorch is found without being imported."""
    return Path(importlib.util.find_spec("torch").origin).parent / "include/ATen/autocast_mode.h"


def rules(text: str) -> dict[str, list[str]]:
    """The operators of each policy, as `name` or `name.overload`, in the header's order."""
    found = {}
    for name, body in LIST.findall(text):
        if name in NO_RULES:
            continue
        if name not in LISTS:
            raise ValueError(f"PyTorch has a list {name}, which has no policy in {__file__}.")
        entries = [
            quoted or ".".join(filter(None, [op, overload]))
            for op, overload, quoted in ENTRY.findall(body)
        ]
        if len(entries) != len(re.findall(r"\b_\(", body)):
            raise ValueError(f"An entry of {name} has a form that {__file__} cannot read.")
        found[LISTS[name]] = entries
    if missing := set(LISTS.values()) - set(found):
        raise ValueError(f"PyTorch's header has no list for {', '.join(sorted(missing))}.")
    return found
