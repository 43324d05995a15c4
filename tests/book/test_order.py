# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses an order of chapters that is not said once."""

from small_book import ALL, CPP, SOUND, says

INDEX = "docs/index.md"
CHOICES = "meson.options:1: option 'chapter' has the choices {}; the order in meson.build is {}."
TOCTREE = INDEX + ":1: the toctree has the chapters {}; the order in meson.build is {}."
MUST_NOT_KNOW = "{} comes before {} and must not know it; it may use {}."

test_refuses = says({
    "a meson.build that names no chapters": (
        {"meson.build": "project('x')\n"},
        "meson.build:1: names no chapters; it needs `contents = ['device', ...]`...."),
    **{f"the choices {choices} of the option": (
        {"meson.options": ("['device', 'hooks']", str(choices))}, CHOICES.format(choices, ALL))
       for choices in (["hooks", "device"], ["device"], [])},
    "no meson.options": ({"meson.options": None}, CHOICES.format([], ALL)),
    **{f"a toctree of {entries}": (
        {INDEX: ("device\nhooks", "\n".join(entries))}, TOCTREE.format(entries, ALL))
       for entries in (["hooks", "device"], ["hooks"])},
    "no docs/index.md": ({INDEX: None}, TOCTREE.format([], ALL)),
    "a listed chapter without a directory": (
        {"meson.build": ("'hooks'", "'hooks', 'amp'")},
        "meson.build:1: chapters/amp does not exist; take 'amp' from `contents`, or write it...."),
    "a chapter with code that is not listed": (
        {"chapters/amp/amp.h": "#pragma once\n"},
        "chapters/amp/amp.h:1: 'amp' is not in `contents` of meson.build; add it there."),
    "an include of a later chapter": (
        {CPP: ("chapters/device/runtime.h", "chapters/hooks/hooks.h")},
        f"{CPP}:2: " + MUST_NOT_KNOW.format("device", "hooks", "device")),
    "an include of a chapter in common": (
        {"common/check.h": ("#pragma once", '#include "chapters/device/runtime.h"')},
        "common/check.h:1: " + MUST_NOT_KNOW.format("common", "device", "none")),
})  # fmt: skip

test_refuses_an_import_of_a_later_chapter = says({
    f"{line} in {path}": (
        {f"chapters/device/{path}": line + "\n"},
        f"chapters/device/{path}:1: " + MUST_NOT_KNOW.format("device", "hooks", "device"))
    for path in ("_device.py", "tests/test_device.py")
    for line in (
        "import torch_openreg._hooks",
        "from torch_openreg._hooks import x",
        "from torch_openreg import _C, _hooks",
        "from . import (_C,\n    _hooks)",
        "from ._hooks import x",
    )
})  # fmt: skip

test_accepts = says({
    "a toctree with titles, folders and suffixes": (
        {INDEX: ("device\nhooks", "First <device/index>\ndevice/more\n/hooks.md")}, SOUND),
    "a chapter that uses itself and what came before": (
        {"chapters/hooks/more.py": "from . import _device, _hooks\n"},
        SOUND.replace("4 files", "5 files")),
    "every chapter in the shell of the package": (
        {"python/torch_openreg/__init__.py": "from . import _device, _hooks\n"}, SOUND),
})  # fmt: skip
