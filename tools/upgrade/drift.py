# SPDX-License-Identifier: BSD-3-Clause
"""What a backend must know of another release of PyTorch, compared with this one.

python tools/upgrade/drift.py --look LOOK.json     what this Python's PyTorch has
python tools/upgrade/drift.py OLD.json NEW.json    what came, went or changed between two of these
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import re
from pathlib import Path

import autocast_rules
from private_names import exists
from private_names import private_names as ours

# The classes that ours derive from, with their own bases and headers.
INTERFACES = {
    "c10::impl::DeviceGuardImplInterface": "c10/core/impl/DeviceGuardImplInterface.h",
    "at::AcceleratorHooksInterface": "ATen/detail/AcceleratorHooksInterface.h",
    "at::PrivateUse1HooksInterface": "ATen/detail/PrivateUse1HooksInterface.h",
    "c10::Allocator": "c10/core/Allocator.h",
    "c10::DeviceAllocator": "c10/core/CachingDeviceAllocator.h",
    "c10::MemoryReportingInfoBase": "c10/core/Allocator.h",
    "at::GraphImplInterface": "ATen/core/GraphImplInterface.h",
    "at::CachingHostAllocatorImpl": "ATen/core/CachingHostAllocator.h",
    "at::HostAllocator": "ATen/core/CachingHostAllocator.h",
    "c10::BackendMeta": "c10/core/TensorImpl.h",
    "c10::OperatorKernel": "ATen/core/boxing/OperatorKernel.h",
    "c10::GeneratorImpl": "c10/core/GeneratorImpl.h",
    "torch::profiler::impl::ProfilerStubs": "torch/csrc/profiler/stubs/base.h",
    "libkineto::IActivityProfiler": "kineto/IActivityProfiler.h",
    "libkineto::IActivityProfilerSession": "kineto/IActivityProfiler.h",
}


def without_names(declaration):
    """The declaration without the names of its parameters, which mean nothing to a caller."""
    declaration = re.sub(r"\[\[\w+\]\]\s*", "", " ".join(declaration.split()))
    named = r"([(,]\s*(?:const\s+)?(?!const\b)[\w:]+(?:<[^<>]*>)?[\s*&]+)\w+(?=\s*[,)=])"
    declaration = re.sub(r"\s+(?=[,)&*])|(?<=\()\s+", "", re.sub(named, r"\1", declaration))
    return " ".join(declaration.split())


def virtual_functions(text, interface):
    """The declarations of virtual functions in a class, each as one line."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    name = interface.rpartition("::")[2]
    begin = re.search(rf"\b(?:struct|class)\s+(?:\w+\s+)*{name}\s*(?::[^;{{}}()]*)?{{", text)
    if not begin:
        raise ValueError(f"There is no class {interface} in its header, {INTERFACES[interface]}.")
    # What is in deeper braces is a body, unless it is in parentheses: a default argument.
    members, enclosing = "", []
    for character in text[begin.end() :]:
        if character in "}" and not enclosing:
            break
        if character in "})":
            enclosing.pop()
        if "{" not in enclosing[:1]:
            members += ";" if character in "{}" and not enclosing else character
        if character in "{(":
            enclosing.append(character)
    found = (without_names(member) for member in members.split(";"))
    found = (re.sub(r"^(public|private|protected)\s*:\s*", "", member) for member in found)
    return [m for m in found if re.search(r"\bvirtual\b|\)[\w ]*override", m)]


def words_in(headers):
    """All words of PyTorch's headers."""
    words = set()
    for folder in ("ATen", "c10", "torch"):
        for header in (headers / folder).rglob("*.h"):
            words.update(re.findall(r"\w+", header.read_text("utf-8", "replace")))
    return words


def look():
    """What the PyTorch of this Python has of each kind, as {kind: {item: remark}}."""
    headers = Path(importlib.util.find_spec("torch").origin).parent / "include"
    import torch

    found = {
        interface: dict.fromkeys(virtual_functions((headers / header).read_text(), interface), "")
        for interface, header in INTERFACES.items()
    }
    for policy, names in autocast_rules.rules(autocast_rules.header().read_text()).items():
        found[f"autocast, {policy}"] = dict.fromkeys(names, "")
    types = (value for value in vars(torch).values() if isinstance(value, torch.dtype))
    found["dtypes"] = dict.fromkeys(sorted(set(map(str, types))), "")
    words = words_in(headers)
    found["private names of PyTorch that we use"] = {
        name: ", ".join(f"{file}:{line}" for file, line in places)
        for name, places in ours().items()
        if exists(name, importlib.import_module, words)
    }
    kernels = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    found["operators with a kernel for the CPU"] = dict.fromkeys(sorted(kernels), "")
    # The backend is here only if this runs in the environment of a build.
    with contextlib.suppress(ImportError):
        from torch_openreg.dispatch import path_of

        names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
        paths = {name: path_of(name)[0] for name in sorted(names)}
        for path in ("fallback", "refused"):
            found[f"operators without a kernel of ours: {path}"] = {
                name: "" for name in paths if paths[name] == path
            }
    return {"torch": torch.__version__, "found": found}


def compare(old, new):
    """Lines of a report: what only one of two releases has."""
    yield f"torch {old['torch']} -> {new['torch']}"
    for kind in {**old["found"], **new["found"]}:
        if kind not in old["found"] or kind not in new["found"]:
            lacking = (old if kind in new["found"] else new)["torch"]
            yield f"\n{kind}: not compared, because there is no build for torch {lacking}"
            continue
        before, after = old["found"][kind], new["found"][kind]
        lines = [f"  - {each} {before[each]}".rstrip() for each in before if each not in after]
        lines += [f"  + {each} {after[each]}".rstrip() for each in after if each not in before]
        count = f"{len(before)} -> {len(after)}" if lines else f"the same {len(after)}"
        yield f"\n{kind}: {count}"
        yield from lines


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--look", action="store_true", help="write what is here")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.look:
        options.files[0].write_text(json.dumps(look(), indent=1))
    else:
        old, new = (json.loads(file.read_text()) for file in options.files)
        print(*compare(old, new), sep="\n")


if __name__ == "__main__":
    main()
