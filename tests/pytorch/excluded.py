# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest for PyTorch's own test files: each test that fails has a line with its reason, and must fail.

    PYTHONPATH=tests/pytorch python -m pytest -p excluded test_*.py

As a program, `excluded.py RESULTS.xml ...` prints the lines, from runs with `--junitxml` and without the plugin.
"""

import fnmatch
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("excluded.txt")
# What the name of a test and its message say, and the reason.
REASONS = {
    r"has no attribute 'msort'": "NumPy 2 has no msort",
    r"test_set_real_imag": "has a decorator of an older PyTorch",
    r"OutOfMemoryError": "wants more memory than the device has",
    r"test_byte_": "counts warnings of a kernel, which runs on the device",
    r'"on the same device" does not match': "an output on the CPU has a sentence of its own",
    r"test_boolean_|per_sample_weights_failures": "compares with another sentence",
    r"test_rot90|cat_out_different_dtypes": "expects another class of error, which the CPU does not raise",
    r"out_of_bounds_idx": "an index is looked at on the device, so the error comes at the next wait",
    r"test_Dropout1d": "compares a mean of few random numbers",
    r"new_offsets": "the last bit of sums in 16 bits",
}


def excluded():
    """Patterns of tests, and the reason of each."""
    return [line.split(maxsplit=1) for line in LIST.read_text().splitlines()]


def pytest_collection_modifyitems(items):
    expected = excluded()
    for item in items:
        name = f"{item.path.name}::{item.name}"
        for pattern, reason in expected:
            if fnmatch.fnmatchcase(name, pattern):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def of_all_dtypes(name):
    return re.sub("_openreg.*", "_openreg*", name)


def lines(results):
    """One for each test of a run that failed; one for all dtypes of a test if all of them failed."""
    outcomes, messages = defaultdict(set), {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        name = f"{case.get('classname').split('.')[-2]}.py::{case.get('name')}"
        for failure in (*case.findall("failure"), *case.findall("error")):
            messages[name] = failure.get("message") or failure.text
        outcomes[of_all_dtypes(name)].add(name in messages or case.find("skipped") is not None)
    for name, message in messages.items():
        whole = of_all_dtypes(name)
        why = [reason for says, reason in REASONS.items() if re.search(says, name + message)]
        yield f"{whole if outcomes[whole] == {True} else name} {why[0] if why else '?'}"


if __name__ == "__main__":
    print(*sorted({line for results in sys.argv[1:] for line in lines(results)}), sep="\n")
