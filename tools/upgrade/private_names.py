# SPDX-License-Identifier: BSD-3-Clause
"""The private names of PyTorch that our code uses, with file and line: the book's table, and a drift test.

In Python a name is private if one of its parts begins with an underscore, in C++ if it is in a
namespace that PyTorch keeps for itself. Public tables say nothing about these; a release may
rename them without a word.
"""

from __future__ import annotations

import ast
import collections
import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("chapters", "common", "python")
LEFT_OUT = {"tests", "session", "sessions", "sketches", "solutions", "wall", "conftest"}
IN_CPP = re.compile(
    r"\b(?:at|c10|torch|sdp|libkineto)(?:::\w+)*?::(?:detail|impl|native|sdp)(?:::\w+)+|\bsdp(?:::\w+)+"
)


def sources(*endings):
    """Our files with these endings, without tests and what belongs to pages only."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            parts = {Path(part).stem for part in file.relative_to(ROOT).parts}
            if file.suffix in endings and not parts & LEFT_OUT:
                yield file


def is_private(name):
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def dotted(node, known):
    """The full name of `a.b.c` if `a` is of PyTorch; otherwise None."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, known)
        return owner and f"{owner}.{node.attr}"
    return None


def names_in_python(text):
    """Pairs of a private name, as long as it is written, and its line."""
    tree = ast.parse(text)
    # What `import torch` is called where importing it again would be wrong.
    known = {"torch": "torch", "pytorch": "torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                known[alias.asname or alias.name] = name
                if is_private(name):
                    yield name, alias.lineno
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in inner:
            inner.update(part for part in ast.walk(node) if part is not node)
            name = dotted(node, known)
            if name and is_private(name) and not name.startswith("torch.ops."):
                # What Inductor's handlers have is known only while it compiles.
                yield re.sub(r"(\.virtualized\.V\.\w+)\..*", r"\1", name), node.lineno


def names_in_cpp(text):
    code = re.sub(r"//[^\n]*", "", text)
    for match in IN_CPP.finditer(code):
        yield match[0], code[: match.start()].count("\n") + 1


def private_names():
    """{name: [(file, line), ...]}, Python's names first, in alphabetical order."""
    found = collections.defaultdict(list)
    for endings, names_in in (((".py",), names_in_python), ((".cpp", ".h"), names_in_cpp)):
        for file in sources(*endings):
            for name, line in names_in(file.read_text("utf-8")):
                found[name].append((str(file.relative_to(ROOT)), line))
    return {name: sorted(set(found[name])) for name in sorted(found, key=lambda n: ("::" in n, n))}


def is_written(parts):
    """Whether the file of the longest module that the parts name has the words of the others in it."""
    root = Path(importlib.util.find_spec("torch").origin).parent
    for length in range(len(parts), 0, -1):
        package = root.joinpath(*parts[1:length])
        for file in (package.with_suffix(".py"), package / "__init__.py"):
            if file.is_file():
                return set(re.findall(r"\w+", file.read_text("utf-8"))).issuperset(parts[length:])
    return False


def exists(name, modules, words):
    """Whether a PyTorch has the name: in its Python modules, or anywhere in its headers."""
    if "::" in name:
        return name.rpartition("::")[2] in words
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            owner = modules(".".join(parts[:length]))
        except ImportError as error:
            if (error.name or "torch").partition(".")[0] != "torch":
                # What is missing is a package of others, such as those that only the tests need.
                return is_written(parts)
            continue
        for part in parts[length:]:
            if not hasattr(owner, part):
                return False
            owner = getattr(owner, part)
        return True
    return False
