# SPDX-License-Identifier: BSD-3-Clause
"""Which path an operator takes with openreg tensors, from the dispatcher's own tables.

python -m torch_openreg.dispatch                 how many operators take which path
python -m torch_openreg.dispatch add.Tensor      one operator; `add` for all its overloads
python -m torch_openreg.dispatch --refused       what must not fall back to the CPU
python -m torch_openreg.dispatch --overridden    where we replace what PyTorch takes apart
python -m torch_openreg.dispatch --trace x.py    what a program used, and how often
"""

import argparse
import collections
import difflib
import re
import runpy
import sys
from pathlib import Path

import torch

from . import _C

# [operators.dispatch.paths] An operator takes one of these paths, or is refused.
WHY = {
    "native": "a kernel for it was registered at our key",
    "library": "the device runs the CPU's kernel on its own memory",
    "composite": "PyTorch has one kernel for every backend, which calls other operators",
    "parts": "PyTorch takes it apart above autograd, and only its parts arrive here",
    "fallback": "this backend has no kernel for it, so the CPU's runs, between two copies",
    "missing": "there is no kernel for it, neither here nor on the CPU",
}
PATH_OF_KIND = {"kernel": "native", "default backend kernel": "composite", "math kernel": "parts"}


def split(name):
    """`aten::add.Tensor` as (`aten::add`, `Tensor`)."""
    operator, _, overload = name.partition(".")
    return operator, overload


# [operators.dispatch.table] A line of the dispatcher's table names the kernel at a key and the rule that chose it.
def entry(name, key):
    """(file and line of the registration, rule) at `key`, for example (..., "math kernel")."""
    table = torch._C._dispatch_dump_table(name)
    line = rf"^{key}: (.*)registered (?:at|by) (?:/__w/pytorch/pytorch/)?(.*) \[(.*)\]$"
    fallthrough, where, rule = re.search(line, table, re.MULTILINE).groups()
    return where, fallthrough + rule


def path_of(name):
    """(path, why, where): what happens when `name` gets tensors of ours."""
    where, rule = entry(name, "PrivateUse1")
    path = PATH_OF_KIND.get(rule, "fallback")
    if path == "native" and re.search(r"/binding\.cpp:", where):
        path = "library"
    is_by_name = "/by_name.cpp:" in where
    if is_by_name:
        path = "fallback"
    if path == "fallback":
        if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "CPU"):
            path = "missing"
        elif reason := _C.fallback_refusal(*split(name)):
            return "refused", reason, where
        elif is_by_name:
            return path, "we chose the CPU's kernel for it, which runs between two copies", where
    return path, WHY[path], where


# [operators.dispatch.autograd] The line for the key above tells where the gradient comes from.
def autograd_of(name):
    where, rule = entry(name, "AutogradPrivateUse1")
    if rule == "math kernel":
        return "the formulas of its parts"
    if rule in ("kernel", "autograd kernel"):
        return f"autograd has a kernel for it, {where}"
    if rule.startswith("fallthrough"):
        return "none of its own: what its kernel calls is recorded"
    return "no formula: a gradient ends here, with a warning"


# [operators.dispatch.names] Users spell operators in several ways; an unknown name gets suggestions.
def resolve(text):
    """All operators that `text` can mean, with or without namespace and overload."""
    names = set(torch._C._dispatch_get_all_op_names())
    wanted = re.sub(r"^(torch\.)?((ops|Tensor|nn\.functional)\.)?|\.default$", "", text)
    if "::" not in wanted:
        first, _, rest = wanted.partition(".")
        spaces = {name.split("::")[0] for name in names}
        wanted = f"{first}::{rest}" if first in spaces and rest else f"aten::{wanted}"
    found = sorted(n for n in names if n == wanted or split(n)[0] == wanted)
    if not found:
        names |= {split(name)[0] for name in names}
        alike = [name for name in names if ("." in name) == ("." in wanted)]
        near = difflib.get_close_matches(wanted.lower(), alike, 4) or ["none"]
        sys.exit(f"There is no operator {text}; near it are {', '.join(near)}.")
    return found


# [operators.dispatch.describe] The report names the path, the kernel and the gradient of one operator.
def describe(name):
    path, why, where = path_of(name)
    print(torch._C._get_schema(*split(name)))
    print(f"  path      {path}: {why}")
    print(f"  found at  {where}")
    print(f"  gradient  {autograd_of(name)}")


# [operators.dispatch.lists] The same questions can be asked about every operator.
def has_kernel(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def count_all(names):
    counts = collections.Counter(path_of(name)[0] for name in names if name.startswith("aten::"))
    for path, count in counts.most_common():
        print(f"{count:5}  {path}")


def list_refused(names):
    for name in names:
        path, why, _ = path_of(name)
        if path == "refused":
            print(f"{name}: {why}")


def list_overridden(names):
    for name in names:
        if has_kernel(name, "CompositeImplicitAutograd") and has_kernel(name, "PrivateUse1"):
            print(f"{name} by {entry(name, 'PrivateUse1')[0]}; gradient: {autograd_of(name)}")


# [operators.dispatch.trace] The program runs unchanged while the dispatcher counts.
def trace(script, arguments):
    if not Path(script).is_file():
        sys.exit(f"There is no program {script}; name one that can be read.")
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    _C.start_trace()
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        counts = _C.stop_trace()
        paths = {name: path_of(name)[0] for name in counts}
        print(f"{'calls':>7} {'inner':>7}  {'path':<9} operator")
        for name in sorted(counts, key=lambda name: (paths[name], -sum(counts[name]), name)):
            calls, inner = counts[name]
            print(f"{calls:7} {inner:7}  {paths[name]:<9} {name}")


# [operators.dispatch.main] One command traces a program, lists operators or describes them.
def main():
    parser = argparse.ArgumentParser(
        "python -m torch_openreg.dispatch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--refused", action="store_true")
    parser.add_argument("--overridden", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("what", nargs=argparse.REMAINDER, metavar="operator | script")
    options = parser.parse_args()
    names = sorted(torch._C._dispatch_get_all_op_names())
    if options.refused:
        list_refused(names)
    elif options.overridden:
        list_overridden(names)
    elif options.trace and not options.what:
        parser.error("--trace needs a program: --trace script.py, and its arguments")
    elif options.trace:
        trace(options.what[0], options.what[1:])
    elif not options.what:
        count_all(names)
    for text in [] if options.trace else options.what:
        for name in resolve(text):
            describe(name)


if __name__ == "__main__":
    main()

# [-]
