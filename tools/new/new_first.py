# SPDX-License-Identifier: BSD-3-Clause
"""Makes a repository of the backend in a thousand lines, with a driver that waits to be written.

The steps of examples/first become the root of the tree, and their name the name of the driver, so
that one renaming serves for both. Beside them stand the driver's header, a definition for each of
its functions, the claims that every driver must meet, and the driver over plain memory.
"""

from __future__ import annotations

import re

import new_driver
from passages import MARKER

FIRST, DRIVER = "examples/first/", "common/openreg/"
# What the steps print depends on the driver, except where PyTorch speaks.
# A launch that fails on demand is a tool of the simulated driver.
LEFT_OUT = re.compile(r".*/((session|digits|measure)\.txt|late\.\w+|\.clang-format|solutions/.*)")
KEPT = (
    "LICENSE",
    ".gitignore",
    "tools/checklist.py",
    f"{DRIVER}interface/openreg.h",
    f"{DRIVER}core/failure.cpp",
    f"{DRIVER}core/failure.h",
    f"{DRIVER}memory/block_table.cpp",
    f"{DRIVER}memory/block_table.h",
    f"{DRIVER}memory/pages.h",
    f"{DRIVER}memory/region.cpp",
    f"{DRIVER}memory/region.h",
    "tests/openreg/allocate.h",
    "tests/openreg/printed.h",
    "tests/openreg/refused.h",
    "tests/openreg/streams.h",
)
FOLDERS = ("tests/openreg/any_driver/", "examples/plain/")
NOT_OF_PLAIN = ("examples/plain/optional.cpp", "examples/plain/meson.build")
LAUNCH, KERNELS = "examples/plain/kernels_on_host.h", f"{DRIVER}interface/openreg_kernels.h"
HEADER = f"{DRIVER}interface/openreg.h"
# What this tree leaves out, the header says; and no driver needs what the simulated one does.
OF_THE_HEADER = (
    ("openreg_tools.h.", "openreg_tools.h and\n// openreg_graphs.h, which this tree leaves out."),
    ("Linux only: the mappings need memfd_create.", "Linux only."),
    ("openreg needs memfd_create and mmap; it is", "openreg is"),
)
OF_OTHER_FOLDERS = re.compile(r"^extend-(?:in|ex)clude = .*\n", re.MULTILINE)
PACKAGES = ("meson", "ninja", "numpy", "scikit-learn", "pytest")
FORMAT = "ColumnLimit: 100\n"
DRIVER_PASSAGE = """\
# [first.meson.driver] The driver is yours, or with -Ddriver=plain the one over plain memory.
include = meson.project_build_root() / 'include'
run_command('sh', '-c', 'mkdir -p "$1" && ln -sfn "$2" "$1/torch_openreg"', '-', include,
    meson.project_source_root(), check: true)
own = get_option('driver') == 'own'
driver_sources = []
foreach folder : ['common/openreg/core', 'common/openreg/memory',
        own ? 'common/openreg/driver' : 'examples/plain']
    driver_sources += run_command('sh', '-c', 'ls "$1"/*.cpp', '-', meson.project_source_root() / folder,
        check: true).stdout().strip().split('\\n')
endforeach

"""
TESTS = """\

# The claims that every driver must meet, and below those of the steps that are built.
gtest = dependency('gtest', main: true, required: false)
if gtest.found()
    claims = ['event', 'freeing', 'memory', 'refusal', 'stream', 'two_devices', 'destroyed_handles',
        'freed_memory']
    # If the host can follow your device's addresses, too, as it can those of plain memory, empty this list.
    own_memory = ['own_memory']
    claims += own ? own_memory : []
    any_driver = []
    foreach claim : claims
        any_driver += files('tests/openreg/any_driver' / claim + '_test.cpp')
    endforeach
    test('any-driver', executable('test-any-driver', any_driver, include_directories: 'include',
            link_with: driver, dependencies: gtest, build_by_default: false),
        # What a failed claim leaves in a queue can block those after it.
        protocol: 'gtest', timeout: 300, env: {'GTEST_FAIL_FAST': '1'})
endif
foreach step : built
    test(step, python, args: ['-m', 'pytest', '-q', '-p', 'no:cacheprovider',
            files(step / 'tests' / 'test_' + step + '.py')],
        depends: sources == [] ? [driver] : [driver, backend],
        env: {'PYTHONPATH': meson.project_build_root()}, timeout: 300)
endforeach
"""
OPTION = """\
option('driver', type: 'combo', value: 'own', choices: ['own', 'plain'],
    description: 'yours in common/openreg/driver, or the one in examples/plain')
"""
README = """\
# torch_openreg

A backend of PyTorch for the device `openreg`, in ten steps and at most a thousand lines. Its driver is yours to
write: `{folder}` has one function for each that `common/openreg/interface/openreg.h` declares, and each answers
that it is not implemented yet.

## Set up

On Debian or Ubuntu, with Python 3.10 and g++ 11, or newer:

```
sudo apt install g++ python3-dev python3-venv libgtest-dev
python3 -m venv .venv && . .venv/bin/activate
pip install torch=={torch}
pip install -r requirements.txt
meson setup build && ninja -C build
```

## Write the driver

```
python tools/checklist.py
```

prints all functions, in the order in which the steps need them: `[ ]` is to be written, `[x]` does what the claims in
`tests/openreg/any_driver` say, `[!]` is called by a claim that fails and by none that holds, `[-]` waits for others
before a claim can run, and `[.]` is called by no claim. A tick does not mean that a function
is finished: the header promises more than the claims ask. Write a function in `{folder}`, in any file there, delete the
one that waits in `api.cpp`, and run the checklist again; after a new file, type `meson setup --reconfigure build` once.
A file of the driver includes the header as `torch_openreg/common/openreg/interface/openreg.h`.
The files of the driver are compiled together, so the names of their helpers must differ, even in anonymous namespaces.
What `core/failure.h` offers turns an error into a code and a sentence; `memory/region.h` hands out addresses, if you
have no allocator. The functions under `called by no step` are for the claims: the network trains without them. The last
line of the checklist names the function that most claims wait for.

Some claims are about devices that not every vendor has. If the host can follow the addresses of yours, empty the list
`own_memory` in `meson.build`. From the list `claims` there, take `'destroyed_handles'` if your handles are plain
pointers, and `'freed_memory'` if your driver cannot tell freed memory from the host's. The claims, and the sessions and
tests of the steps, need two devices. If there is only one, let your driver show it as two, as the one in
`examples/plain` does with its memory; or take `'two_devices'` from the list, and expect those with `openreg:1` to fail.

A driver of which all that is true is in `examples/plain`, over plain memory and one thread. With it you see at once
how the finished tree behaves, as long as your kernels use no launch of your own:

```
meson setup build-plain -Ddriver=plain
meson test -C build-plain
PYTHONPATH=build-plain python autocast/digits.py
```

## Step by step

| step | what works then |
|---|---|
| `name` | `torch.device("openreg")`, `torch.openreg` |
| `guard` | devices, streams, events |
| `memory` | tensors without contents |
| `copies` | data goes there and comes back |
| `views` | slices, transposes, `deepcopy` |
| `fallback` | every operator, on the CPU, counted |
| `kernels` | the device computes |
| `hooks` | autograd, optimizers, random numbers |
| `autoload` | `import torch` is enough |
| `autocast` | mixed precision, and `autocast/digits.py` trains |

`meson configure build -Dstep=guard` builds up to a step, and `meson test -C build` then runs the claims of the driver
and of the steps so far. Each step's `session.py` shows what works (`PYTHONPATH=build python guard/session.py`), and
its `wall.py` ends in the error that the next step removes.

## Your kernels

`common/openreg/interface/openreg_kernels.h` launches a kernel as a function of the host, which works where the host can
follow the addresses of your device. Put your runtime's launch into its place; if its types come from a header of your
runtime, include that there. To link a runtime, say `libkr.so`, let the `link_args` of `driver` in
`torch_openreg/meson.build` be `['-Wl,-z,nodelete', '-L/opt/kr/lib', '-lkr']`, and add the folder of its headers to the
`include_directories` of both libraries.
A header of your own goes into `common/openreg/interface`, and kernels include it by its name alone.
`torch.openreg.fallback_report()` says which operators ran on the CPU, and so which kernel to write first. A kernel's
file goes beside `kernels/kernels.cpp`, ends in `TORCH_LIBRARY_IMPL` as that one does, and is named in the table
`steps` of `meson.build`.

## On another machine

The package is what the build makes beside each other: `torch_openreg`, `torch_openreg_entry.py` and
`torch_openreg.dist-info`. A Python with the same release of PyTorch finds them in its `site-packages`, or in a folder
that `PYTHONPATH` names. To copy them there, with the other Python active:

```
site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -r build/torch_openreg build/torch_openreg_entry.py build/torch_openreg.dist-info "$site"
rm -r "$site"/torch_openreg/*.p
```

The last line deletes what only the compiler needs. Delete the three by hand before you install a wheel of that name,
because pip cannot. A wheel needs more, such as a check of that release: `./dev new NAME FOLDER --bare`, in the
repository that this one is from, makes a tree that builds one, and your driver moves there as it is.

BSD-3-Clause.
"""


def stage(tree: dict[str, str], torch: str) -> dict[str, str]:
    """The files of the new tree, under their old names; `torch` is the release that it is for."""
    staged = {
        path.removeprefix(FIRST): with_one_name(text)
        for path, text in tree.items()
        if path.startswith(FIRST) and not LEFT_OUT.fullmatch(path)
    }
    staged = {with_one_name(path): text for path, text in staged.items()}
    staged |= {path: text for path, text in tree.items() if path in KEPT}
    staged |= {
        path: text
        for path, text in tree.items()
        if path.startswith(FOLDERS) and path not in (*NOT_OF_PLAIN, LAUNCH)
    }
    new_driver.add_driver(staged)
    for path in (new_driver.PAGE, f"{DRIVER}driver/meson.build"):
        del staged[path]
    staged[KERNELS] = tree[LAUNCH].replace(f"torch_openreg/{DRIVER}interface/", "")
    for words in OF_THE_HEADER:
        staged[HEADER] = staged[HEADER].replace(*words)
    build(staged)
    for path, text in staged.items():
        staged[path] = without_names(text)
    wanted = re.compile(rf"^(?:{'|'.join(PACKAGES)})==.*\n", re.MULTILINE)
    staged["requirements.txt"] = "".join(wanted.findall(tree["requirements.txt"]))
    staged["README.md"] = README.format(folder=f"{DRIVER}driver", torch=torch)
    lines = [line for line in tree[".clang-format"].split("\n") if "[" not in line]
    staged[".clang-format"] = "\n".join(lines) + FORMAT
    ruff = tree["pyproject.toml"].index("[tool.ruff]")
    staged["pyproject.toml"] = OF_OTHER_FOLDERS.sub("", tree["pyproject.toml"][ruff:])
    return dict(sorted(staged.items()))


def build(staged: dict[str, str]) -> None:
    """The driver of the tree, and its tests, in the place of the simulated driver's sources."""
    text = staged["meson.build"]
    begin, end = (text.index(f"# [first.meson.{name}]") for name in ("driver", "order"))
    staged["meson.build"] = text[:begin] + DRIVER_PASSAGE + text[end:] + TESTS
    staged["meson.options"] += OPTION
    package = "torch_openreg/meson.build"
    text = staged[package].replace("../../../common", "../common")
    staged[package] = text.replace("    shared_library(", "    backend = shared_library(")


def with_one_name(text: str) -> str:
    """The name of the steps becomes that of the driver; the library keeps another than the driver's."""
    text = re.sub(
        r"libtiny|(?<=shared_library\(')tiny", lambda found: found[0][:-4] + "torch_tiny", text
    )
    text = re.sub(r"\b([Aa]) (?=[`\"']*tiny\b)", r"\1n ", text)
    return text.replace("tiny", "openreg")


def without_names(text: str) -> str:
    """Markers are for pages, which this tree does not have; their sentences stay."""
    lines = []
    for line in text.split("\n"):
        found = MARKER.fullmatch(line)
        if not found:
            lines.append(line)
        elif found[4]:
            lines.append(f"{found[1]}{found[2]} {found[4]}")
    return re.sub(r"\n+\Z", "\n", "\n".join(lines))
