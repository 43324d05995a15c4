# SPDX-License-Identifier: BSD-3-Clause
"""A small book, by which the passages check is tested."""

import passages
import pytest

GUARD = """\
// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/runtime.h"

namespace openreg {

// [device.guard] How PyTorch switches devices.
class Guard {
 public:
  int count() const { return 1; }

  // [device.guard.streams] Each device has a queue.
  int queue() const {
    return 0;
  }
};

// [device.guard.register] PyTorch finds it.
REGISTER(Guard);

// [-]
}  // namespace openreg
"""
HOOKS = """\
# SPDX-License-Identifier: BSD-3-Clause
import torch

from ._device import (
    count,
)


# [hooks.python] One answer, asked from Python.
class Hooks:
    def count(self):
        return count()

    # [hooks.python.text] It says what it is.
    def __str__(self):
        return "hooks"


# [-]
"""
ERROR = """\
#pragma once

// [common.error] Codes become exceptions.
void check(int code);

// [-]
"""
ALL = ["device", "hooks"]


def listing(name):
    return f"```{{literalinclude}}\n:passage: {name}\n```\n\n"


class Folder:
    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def change(self, path, old, new):
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} must occur once in {path}"
        self.write(path, text.replace(old, new))

    def edit(self, edits):
        """Of each file the whole text, or what is replaced by what, or None to remove it."""
        for path, text in edits.items():
            if text is None:
                (self.root / path).unlink()
            elif isinstance(text, str):
                self.write(path, text)
            else:
                self.change(path, *text)


class Repository(Folder):
    """A small book in which everything is as it should be, and what the check says of it."""

    def __init__(self, root, capsys):
        super().__init__(root, capsys)
        self.write("meson.build", "project('x')\ncontents = ['device', 'hooks']\n")
        self.write(
            "meson.options",
            "option('book', type: 'boolean')\n"
            "option('chapter', type: 'combo', value: 'hooks',\n    choices: ['device', 'hooks'])\n",
        )
        self.write(
            "docs/index.md", "# Book\n\n```{toctree}\n:maxdepth: 1\n\nstart\ndevice\nhooks\n```\n"
        )
        self.write("chapters/device/guard.cpp", GUARD)
        self.write("chapters/hooks/_hooks.py", HOOKS)
        self.write("common/check.h", ERROR)
        self.write("python/torch_openreg/__init__.py", "")
        names = "device.guard", "device.guard.streams", "device.guard.register", "common.error"
        self.device = list(map(listing, names))
        self.hooks = [listing("hooks.python"), listing("hooks.python.text")]
        self.pages()

    def pages(self):
        self.write("docs/device.md", "# Device\n\n" + "".join(self.device))
        self.write("docs/hooks.md", "# Hooks\n\n" + "".join(self.hooks))

    def check(self):
        code = passages.main(["--root", str(self.root)])
        lines = self.capsys.readouterr().out.splitlines()
        assert code == (0 if lines[-1].endswith("hidden") else 1)
        return lines


CPP, PY, DEVICE = "chapters/device/guard.cpp", "chapters/hooks/_hooks.py", "docs/device.md"
SOUND = "4 files, 6 passages, 14 lines shown, 0.0% hidden"


def says(table, before=None):
    """A test for each row of a table: after the edits, the check says this and no more.

    Dots at the end stand for the rest of a sentence, and for other problems.
    """

    @pytest.mark.parametrize(("edits", "said"), table.values(), ids=table)
    def test(book, edits, said):
        book.edit(before or {})
        book.edit(edits)
        lines = book.check()
        if said.endswith("..."):
            assert any(line.startswith(said[:-3]) for line in lines), lines
        else:
            assert lines == said.split("\n"), lines

    return test
