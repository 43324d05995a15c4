# SPDX-License-Identifier: BSD-3-Clause
"""Takes the simulated device out of a tree, and leaves the functions of its driver to be written.

The definitions are made from the headers of the interface. Each fails with its own name, on
the way on which every error of the driver becomes an exception of PyTorch. The pages of the tree
do not show them, and its CI tests what a driver of one's own has reached.
"""

from __future__ import annotations

import re

import pruning

DRIVER = "common/openreg"
PAGE = "docs/driver/yours.md"
# What knows nothing of the device: the text of an error, and the tables of handles, blocks and
# addresses, which other drivers of the book use too.
KEPT = (
    "core/failure.",
    "core/handle_table.",
    "core/meson.build",
    "interface/",
    "memory/block_table.",
    "memory/mapping.",
    "memory/meson.build",
    "memory/pages.",
    "memory/region.",
    "meson.build",
)
FOLDERS = ("interface", "core", "memory", "driver")
KEPT_SECTIONS = {
    "docs/driver/machine.md": (
        "# The machine: errors and handles\n\nA driver of yours can use what this page shows.\n\n",
        ("## Recording a failure", "## Handles"),
    ),
    "docs/driver/memory.md": (
        "# Memory: blocks, regions and mappings\n\nA driver of yours can use what this page shows.\n\n",
        ("## Blocks in use", "## Regions", "## Mappings and the memory file"),
    ),
    "docs/driver.md": ("", ("## The C interface", "## Kernels that the host", "## Optional parts")),
}
INTRODUCTION = """\
# The driver

A backend needs a device, and a driver to talk to it. The device is yours. Its driver is a library, `libopenreg`, with
the C interface that this page shows. It knows nothing of PyTorch. Its functions wait to be written:

```{toctree}
:maxdepth: 1

driver/machine
driver/memory
driver/yours
```

"""
YOURS = """\
# Your driver

Each function of the interface answers that it is not implemented yet, with its name: `torch.openreg` shows which call
of the driver a program needs next. Write the functions in the order in which you meet their names. The claims in
`tests/openreg/any_driver` hold for every driver, so they say what is still to be done:

```console
$ .venv/bin/meson test -C build any-driver
```

[A first driver](../plain.md) shows them written for plain memory, in five files, and [a real driver](../opencl.md) over
OpenCL. Both take errors, blocks and regions from the files that are kept here.
"""
HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/{header}"
#include "torch_openreg/common/openreg/driver/not_implemented.h"

using openreg::hardware::notImplemented;

"""
CI = """\
#!/usr/bin/env bash
# What CI runs: the tests that your driver and your kernels pass. Add those of the next day of the plan.
set -euo pipefail
cd "$(dirname "$0")/.."
chapter=device
kernels=none
tests=(any-driver)
releases=(2.14.1 2.15.0)  # besides the first one; name in OPENREG_CI_TORCH those to test with
for release in "" ${OPENREG_CI_TORCH-}; do
    ./dev ${release:+--torch "$release"} setup
    PATH=$PWD/.venv${release:+-$release}/bin:$PATH  # of Meson and its Ninja
    build=build${release:+-$release}
    [[ -d $build ]] || meson setup "$build"
    meson configure "$build" -Dchapter="$chapter" -Dkernels="$kernels"
    meson test -C "$build" "${tests[@]}"
done
"""
# The path, what it says of the simulated device, and what it says without.
WITHOUT_THE_DEVICE = (
    (
        "tools/passages.py",
        r'if NOT_IN_THE_BOOK.isdisjoint\(path.split\("/"\)\)',
        r"""\g<0>
            and not path.startswith("common/openreg/driver/")
            and (not path.startswith("common/openreg/") or any("// [" in line for line in lines))""",
    ),
    ("Dockerfile", r"(?<=and the first backend is )built and trained", "ready to be built"),
    ("Dockerfile", r"\./dev first", "./dev setup"),
    ("README.md", r"(?<=machine on which `)\./dev first(?=` has run)", "./dev setup"),
    (".devcontainer/devcontainer.json", r"\./dev first", "./dev setup"),
    (".github/workflows/test.yml", r"(?<=for every change); and every night.*?\.\n", ".\n"),
    (".github/workflows/test.yml", r"  schedule:\n.*?\n(?=permissions)", ""),
    (".github/workflows/test.yml", r" +if: github.event_name != 'schedule'\n", ""),
    (".github/workflows/test.yml", r"\n  all:\n.*\Z", ""),
    (
        "CONTRIBUTING.md",
        r"\./dev test --quick +#[^\n]*",
        "bash .ci/run                                               # what your driver has reached",
    ),
    (
        "CONTRIBUTING.md",
        r"For every change, CI runs `\./dev test`.*?`\./dev test --all`\.",
        "`.ci/run` names the tests that CI runs; [the plan](docs/your_own_backend.md) says which come next.",
    ),
    (
        "README.md",
        r"\*\*How to write a PyTorch backend.*?(?=## Two commands)",
        "A PyTorch backend for the device `openreg`, whose driver is yours to write. [A plan](docs/your_own_backend.md)\n"
        "says in which order, and each day of it ends with a test that passes. On Debian or Ubuntu, in a fresh checkout:\n\n"
        "```\n"
        "./dev setup                                          # sets everything up\n"
        ". .venv/bin/activate\n"
        "meson setup build -Dkernels=none -Dchapter=amp\n"
        "python tools/checklist.py                            # builds the driver, and says what it lacks\n"
        "```\n\n"
        "What stands on the driver is a [book](docs/introduction.md) of nine chapters. Each but the last ends at a short\n"
        "program that does not work yet, and the next one begins there.\n\n",
    ),
    (
        "docs/index.md",
        r"Its device is simulated but behaves like an accelerator:[^.]*\.",
        "Its device is yours, and the [driver](driver.md) waits to be written.",
    ),
    (
        "docs/ways.md",
        r"For those who have code for accelerators and no accelerator: install .*?\.\n",
        "For those who test code for accelerators: install the backend, test on it with fixtures, and count what ran on\n"
        "the CPU.\n",
    ),
    (
        "docs/driver.md",
        r"A device that is simulated can also say",
        "A simulated device could also say",
    ),
    (
        "docs/first/name.md",
        r"The simulated machine has two devices\. Note",
        "The text is of a machine with two devices. Note",
    ),
    (
        "README.md",
        r"The device is simulated, but behaves as hardware does:.*?\n\n",
        "`./dev demo`, `./dev test` and `pip install` build the kernels that launch functions of the\n"
        "host, with `orLaunchCommand`. For a device that has only kernels of its own, type `./dev demo\n"
        "--kernels FOLDER`, or `--kernels none`, and what the plan says.\n\n",
    ),
    (
        "README.md",
        r"The first ends with:\n\n```.*?\n```\n\n",
        "Both need the driver. Until it is written, the first ends at `not implemented yet`.\n\n",
    ),
    (
        "docs/index.md",
        r"The first command ends with:\n\n```.*?\n```\n\n",
        "Both need the driver. Until it is written, the first ends at `not implemented yet`.\n\n",
    ),
    ("README.md", r"The second (?=ends)", "`./dev test` "),
    ("docs/index.md", r"The second (?=ends)", "`./dev test` "),
    (
        "docs/reference.md",
        r"The simulated device reads its \[configuration\].*?and PyTorch one:",
        "The package and its libraries read four, and PyTorch one:",
    ),
    (
        "README.md",
        r" `\./dev bench`\s\[measures\]\(docs/measurements\.md\) what the\sdevice costs on your machine, and ",
        "\n",
    ),
    (
        "README.md",
        r"Not fast hardware: the device computes on your processor, with PyTorch's own CPU kernels\. ",
        "",
    ),
    (
        "README.md",
        r"PyTorch itself judges it: all 677 operators.*?with its reason\. ",
        "PyTorch's own database of operators is the judge. ",
    ),
    ("README.md", r" CI runs it every night\.", ""),
    ("README.md", r"; the simulated device needs `memfd_create`(?=\.)", ""),
    ("docs/index.md", r"## Three(?= ways in)", "## Two"),
    ("docs/introduction.md", r"(?<=; )its two pictures are enough to begin\s+with", "skim it"),
    (
        "docs/introduction.md",
        r"\[the device is simulated\]\(driver\.md\)",
        "only a [driver](driver.md)",
    ),
    ("docs/index.md", r":::\{container\} way\n\*\*I need a device for tests\.\*\*.*?:::\n\n", ""),
)
NOT_IMPLEMENTED = """\
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"

namespace openreg::hardware {

// A function that is not written yet fails with its own name.
inline orError_t notImplemented(const char* function) noexcept {
  try {
    return fail(orErrorNotSupported, "not implemented yet: ", function);
  } catch (...) {
    return failWithException();
  }
}

}  // namespace openreg::hardware
"""


def leave_out_the_device(tree: dict[str, str]) -> None:
    gone = {path for path in tree if path.startswith(f"{DRIVER}/") and not is_kept(path)}
    gone |= {path for path in tree if path.startswith("tests/openreg/simulator/")}
    gone |= {path for path in tree if path.startswith("docs/driver/")} - KEPT_SECTIONS.keys()
    tests = {f"`{test}`" for path in gone for test in tests_in(tree[path])}
    for page, (beginning, kept) in KEPT_SECTIONS.items():
        tree[page] = (beginning or INTRODUCTION) + with_sections(tree[page], kept)
        for sentence in re.findall(r"[^.]*`\w+\.\w+`[^.]*\.", tree[page]):
            if any(test in sentence for test in tests):
                tree[page] = tree[page].replace(sentence, "")
    pruning.leave_out(tree, gone)
    tree[f"{DRIVER}/meson.build"] = with_folders(tree[f"{DRIVER}/meson.build"], FOLDERS)
    add_driver(tree)
    tree[".ci/run"] = CI
    for path, words, instead in WITHOUT_THE_DEVICE:
        tree[path], found = re.subn(words, instead, tree[path], flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"{path} says {words!r} {found} times; it must say it once.")


def tests_in(text: str) -> set[str]:
    """The names of GoogleTest's tests, as pages write them."""
    return {".".join(found) for found in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", text, re.M)}


def with_sections(page: str, kept: tuple[str, ...]) -> str:
    """Those of a page's sections whose headings are kept."""
    _, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    return "".join(text for text in sections if text.startswith(kept))


def with_folders(build: str, folders: tuple[str, ...]) -> str:
    """The driver's build file with another list of folders, which may take several lines."""
    listed = ", ".join(f"'{folder}'" for folder in folders)
    text, found = re.subn(r"\['interface'[^]]*\]", f"[{listed}]", build)
    if found != 1:
        raise ValueError(f"{DRIVER}/meson.build has {found} lists of folders; it must have one.")
    return text


def is_kept(path: str) -> bool:
    return path.removeprefix(f"{DRIVER}/").startswith(KEPT)


def add_driver(tree: dict[str, str]) -> None:
    """Definitions of what the headers declare, and the page that shows them."""
    new = {f"{DRIVER}/driver/not_implemented.h": NOT_IMPLEMENTED}
    for header in sorted(path for path in tree if path.startswith(f"{DRIVER}/interface/")):
        if not header.endswith(".h"):
            continue
        name = header.rsplit("/", 1)[-1].replace("openreg", "api").replace(".h", ".cpp")
        text = "\n".join(groups_of(tree[header]))
        new[f"{DRIVER}/driver/{name}"] = HEAD.format(header=header) + text
    sources = [path.rsplit("/", 1)[-1] for path in new if path.endswith(".cpp")]
    listed = "".join(f"    '{name}',\n" for name in sources)
    tree[PAGE] = YOURS
    tree |= new
    comment = "# The functions that wait to be written.\n"
    tree[f"{DRIVER}/driver/meson.build"] = f"{comment}openreg_device_sources += files(\n{listed})\n"


def groups_of(header: str) -> list[str]:
    """For each passage of a header that declares functions, their definitions."""
    found = []
    for part in re.split(r"^(?=// \[)", header, flags=re.MULTILINE):
        sentence = re.match(r"// \[common\.[\w.-]*\] (.*)", part)
        code = re.sub(r"//[^\n]*", "", part)
        declared = re.findall(
            r"OPENREG_EXPORT\s+([\w\s*]+?)\s*\b(or\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*OPENREG_NOEXCEPT;",
            code,
        )
        functions = [definition(*function) for function in declared if not has_text(function[1])]
        if sentence and functions:
            comment = f"// To be written; in the header: {sentence[1]}\n"
            found.append(comment + "".join(functions))
    return found


def has_text(function: str) -> bool:
    """Whether core/failure.cpp defines it."""
    return "Error" in function


def definition(returned: str, function: str, arguments: str) -> str:
    fails = f'notImplemented("{function}")'
    if function == "orDeviceIsStarted":
        # The package asks at the end of each process, and there the answer is known.
        known = "*started = 0; return orSuccess;"
        return f"{returned} {function}(int, int* started) noexcept {{ {fails}; {known} }}\n"
    unnamed = re.sub(r"\s+", " ", arguments)
    unnamed = re.sub(r"(\w+)(?=,|$)", r"/*\1*/", unnamed) if unnamed != "void" else ""
    unnamed = re.sub(r"\(\*(\w+)\)", r"(*/*\1*/)", unnamed)
    # What returns no error can still leave one, as the last of its thread.
    answers = {"orError_t": f"return {fails}", "void": fails}
    answer = answers.get(returned, f"{fails}; return 0")
    return f"{returned} {function}({unnamed}) noexcept {{ {answer}; }}\n"
