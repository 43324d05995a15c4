# SPDX-License-Identifier: BSD-3-Clause
"""Makes a repository of your own: this one, under the name of your device.

Nothing is a template. Every file of the tree is copied, and every form of the old name in paths
and texts becomes the same form of the new one: `torch_openreg`, `OPENREG_SCHEDULE`, `libopenreg`,
`orMalloc`. What depends on the width of a name is formatted or aligned again.
"""

from __future__ import annotations

import errno
import fnmatch
import keyword
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import new_driver
import new_first
import pruning

OLD, OLD_CAMEL, OLD_PREFIX = "openreg", "OpenReg", "or"
ROOT = Path(__file__).resolve().parents[2]
# The types that a plain PyTorch accepts.
KNOWN = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia",
    "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
# Inductor and torch.load take whatever begins with one of these for it.
BEGINNINGS = ("cpu", "cuda", "mps", "xpu")
CPP_WORDS = (
    "auto bool case catch char const decltype default delete do double enum explicit export extern "
    "float friend goto inline int long mutable namespace new noexcept operator private protected "
    "public register requires short signed sizeof static struct switch template this throw true "
    "typedef typeid typename union unsigned using virtual void volatile"
)
# What speaks of PyTorch's own reference backend is not true of a backend with another name.
ABOUT_THE_REFERENCE = {
    "README.md": "## If you know PyTorch's own small backend",
    "docs/afterword.md": "## If you know the reference backend",
    "docs/driver.md": "### Differences from the reference backend's driver",
    "docs/yours/pytorch.md": "## The tests of the reference backend",
}
# What tests this program is full of names that it could give.
OURS = "tests/new/"
# Files and libraries have names that are longer than the device's, and a file system's limit is 255.
MOST_LETTERS = 64
CODE = (".h", ".cpp", ".c", ".cl", ".py")


class Refused(Exception):
    """A sentence for the reader: what cannot be done, and why."""


# Reading.


def files_of(root: Path) -> list[str]:
    """What git tracks or would; without git, as in a source distribution, all but .gitignore's."""
    git = ["git", "-C", str(root)]
    top = shutil.which("git") and subprocess.run(
        [*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True
    )
    if top and top.returncode == 0 and Path(top.stdout.strip()).resolve() == root.resolve():
        listing = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
        return sorted(name for name in names.split("\0") if (root / name).is_file())
    lines = (root / ".gitignore").read_text().split("\n")
    patterns = [".git", *(line for line in lines if line and not line.startswith("#"))]
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file()
        and path.name != "PKG-INFO"
        and not any(is_ignored(path.relative_to(root).parts, pattern) for pattern in patterns)
    )


def is_ignored(parts: tuple[str, ...], pattern: str) -> bool:
    """Whether a line of .gitignore means the file: `/` begins one of the root, and ends one of a folder."""
    where = parts[:-1] if pattern.endswith("/") else parts
    where = where[:1] if pattern.startswith("/") else where
    return any(fnmatch.fnmatch(part, pattern.strip("/")) for part in where)


def read(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text("utf-8") for name in files_of(root)}


def make_folder(folder: Path, root: Path) -> None:
    """Makes the folder that a tree of its own is written to, unless it is there and empty.

    @throws Refused, with the reason, if nothing can be written there
    """
    instead = "name a folder that is empty or does not exist"
    try:
        if folder.resolve().is_relative_to(root.resolve()):
            raise Refused(
                f"{folder} lies within {root.resolve()}, which would take the new files for its "
                f"own; {instead}, beside it or elsewhere."
            )
        if folder.is_file():
            raise Refused(f"{folder} is a file; {instead}.")
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Refused(f"{folder} is not empty; {instead}.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise Refused(
            f"Nothing can be written to {shortened(folder)} ({error.strerror}); {instead}, where you may write."
        ) from None


def shortened(text: object) -> str:
    """Text of the reader's for a sentence, which must remain readable."""
    return str(text) if len(str(text)) <= 100 else f"{str(text)[:60]}... ({len(str(text))} letters)"


def write(tree: dict[str, str], folder: Path, modes: dict[str, int]) -> None:
    """A file without a mode is one that everybody reads. Its owner writes each, even if ours are read-only."""
    try:
        for path, text in tree.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
            (folder / path).chmod(modes.get(path, 0o644) | 0o200)
    except OSError as error:
        raise Refused(
            f"{folder / path} could not be written ({error.strerror}); remove {folder}, and begin "
            "again where there is room."
        ) from None


# Names.


def check_name(name: str, tree: dict[str, str]) -> None:
    """@throws Refused, with the reason, for what cannot be the name of a device."""
    if name in KNOWN:
        raise Refused(f"{name} is a device that PyTorch knows; choose a name of your own.")
    if keyword.iskeyword(name) or name in CPP_WORDS.split():
        raise Refused(f"{name} is a word of Python or C++; choose a name that is none.")
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name):
        raise Refused(
            f"{shortened(name)!r} cannot name a device: PyTorch reads lower-case letters, and underscores "
            "between them."
        )
    if len(name) > MOST_LETTERS:
        raise Refused(
            f"{shortened(name)} is too long for the names of files and libraries that are made of "
            f"it; choose a name of at most {MOST_LETTERS} letters."
        )
    for known in BEGINNINGS:
        if name.startswith(known):
            raise Refused(f"{name} begins with {known}, and PyTorch may take it for that device.")
    if name == OLD:
        raise Refused(f"{name} is the name that this tree has; choose another.")
    word = re.compile(rf"\b{name}\b")
    for path, text in tree.items():
        if path.endswith(CODE) and not path.startswith(OURS) and (found := word.search(text)):
            line = text.count("\n", 0, found.start()) + 1
            raise Refused(f"{name} means something else in {path}:{line}; choose another name.")


def part_of_words(name: str, tree: dict[str, str]) -> tuple[str, str] | None:
    """A word of which the name is only a part, and its file, if there is one."""
    either = f"(?:{name}|{name.upper()})"
    word = re.compile(rf"[-\\(]?[A-Za-z]*{either}[A-Za-z]*")
    whole = re.compile(rf"[-(]?(\\n|V|l|lib|Autocast)?{either}(InitModule)?")
    found = ((w, path) for path, text in tree.items() for w in word.findall(text))
    return next((one for one in found if not whole.fullmatch(one[0])), None)


def check_old_name(tree: dict[str, str]) -> None:
    """@throws Refused if the name of this tree is also a part of other words."""
    if found := part_of_words(OLD, tree):
        raise Refused(
            f"{OLD} cannot be told from a part of {found[0]} in {found[1]}; start from the tree "
            "that this one was made from."
        )


def c_functions(tree: dict[str, str]) -> set[str]:
    """The identifiers with the prefix of the C interface, from the headers that declare them."""
    headers = [text for path, text in tree.items() if "/interface/" in path]
    return {word for text in headers for word in re.findall(rf"\b{OLD_PREFIX}[A-Z]\w*", text)}


def beginnings(tree: dict[str, str]) -> dict[str, str]:
    """What identifiers begin with, up to the first capital letter; for each, the first of them."""
    texts = [text for path, text in tree.items() if path.endswith(CODE) and OURS not in path]
    words = [found for text in texts for found in re.finditer(r"\b([a-z]+)[A-Z]\w*", text)]
    return {found[1]: found[0] for found in reversed(words)}


def check_prefix(prefix: str, tree: dict[str, str]) -> None:
    """@throws Refused, with the reason, for what cannot begin the names of a driver's functions."""
    if not re.fullmatch(r"[a-z]+", prefix):
        raise Refused(
            f"{shortened(prefix)!r} cannot begin a function of the driver; its prefix has lower-case "
            f"letters only, as in {OLD_PREFIX}Malloc."
        )
    if other := beginnings(tree).get(prefix):
        raise Refused(f"{prefix} begins {other}, too; choose another prefix.")


def new_prefix(name: str, tree: dict[str, str]) -> str:
    """The shortest beginning of the name, of two letters or more, that no identifier begins with."""
    letters, words = name.replace("_", ""), beginnings(tree)
    return next((letters[:n] for n in range(2, len(letters)) if letters[:n] not in words), letters)


class Names:
    """What each form of the old name becomes."""

    def __init__(self, name: str, tree: dict[str, str], prefix: str | None = None):
        if prefix is not None:
            check_prefix(prefix, tree)
        self.prefix = prefix or new_prefix(name, tree)
        self.camel = "".join(part.capitalize() for part in name.split("_"))
        self.forms = {OLD: name, OLD.upper(): name.upper(), OLD_CAMEL: self.camel}
        for word in c_functions(tree):
            self.forms[word] = self.prefix + word.removeprefix(OLD_PREFIX)
        functions = "|".join(sorted(c_functions(tree), key=len, reverse=True))
        self.token = re.compile(
            rf"{OLD}|{OLD.upper()}|{OLD_CAMEL}|(?<![A-Za-z0-9])(?:{functions})\b"
            rf"|(?<=[\"`]){OLD_PREFIX}(?=[\"`])"
        )
        self.forms[OLD_PREFIX] = self.prefix
        self.article = re.compile(rf"\b([Aa])n(?=\s+[`\"']*(?:{self.token.pattern}))")
        vowels = {form: new[0].lower() in "aeiou" for form, new in self.forms.items()}
        self.an = "n" if vowels[OLD] else ""

    def rename(self, text: str) -> str:
        text = self.article.sub(rf"\1{self.an}", text)
        return self.token.sub(lambda found: self.forms[found[0]], text)

    def rename_aligned(self, text: str) -> str:
        """Columns that two or more spaces separate stay where they were, if there is room."""
        return "\n".join(map(self.rename_line, text.split("\n")))

    def rename_line(self, line: str) -> str:
        parts, grown = re.split(r"(?<=\S)( {2,})(?=\S)", line), 0
        for n, part in enumerate(parts):
            if n % 2:
                kept = max(2, len(part) - grown)
                parts[n], grown = " " * kept, grown - (len(part) - kept)
            else:
                parts[n] = self.rename(part)
                grown += len(parts[n]) - len(part)
        return "".join(parts)


# Changing.


def section(text: str, heading: str) -> str:
    """A section of a page, up to the next heading of its level or a higher one."""
    level = len(heading) - len(heading.lstrip("#"))
    found = re.search(
        rf"^{re.escape(heading)}\n.*?(?=^#{{1,{level}}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return found[0] if found else ""


def leave_out_the_reference(tree: dict[str, str]) -> None:
    for path, heading in ABOUT_THE_REFERENCE.items():
        tree[path] = tree[path].replace(section(tree[path], heading), "")


def begin_the_changelog(tree: dict[str, str]) -> None:
    """The history of this tree is not that of the new one."""
    tree["CHANGELOG.md"] = tree["CHANGELOG.md"].split("\n- ")[0].rstrip("\n") + "\n"


def name_the_origin(new: dict[str, str], name: str, tree: dict[str, str]) -> None:
    """The two places where the old name stays: the license asks for one, and honesty for the other."""
    version = re.search(r"version: '(.*?)'", tree["meson.build"])[1]
    origin = f"It began as a copy of [torch_{OLD}](LICENSE) {version}.\n"
    new["README.md"] = new["README.md"].rstrip("\n") + f" {origin}"
    theirs = re.search(r"^Copyright", tree["LICENSE"], re.MULTILINE).start()
    ours = f"Copyright (c) the torch_{name} authors\n"
    new["LICENSE"] = tree["LICENSE"][:theirs] + ours + tree["LICENSE"][theirs:]


def renamed(tree: dict[str, str], names: Names) -> dict[str, str]:
    """The same tree under the new name, in the order of its new paths."""
    found = {}
    for path, text in tree.items():
        plain = path.endswith(CODE)
        found[names.rename(path)] = (names.rename if plain else names.rename_aligned)(text)
    return dict(sorted(found.items()))


# Writing.


def format_code(folder: Path) -> list[str]:
    """Formats all files, since a name of another width or alphabetical order moves their lines.

    Returns the programs that are missing; without them the tree is as correct, and less tidy.
    """
    tools = f"{ROOT / '.venv/bin'}:{Path(sys.executable).parent}"
    # The programs run in the folder, which may have been named from elsewhere.
    files = (file.relative_to(folder) for file in folder.rglob("*"))
    sources = [str(file) for file in files if file.suffix in (".h", ".cpp", ".c")]
    commands = [["ruff", "check", "-q", "--no-cache", "--fix", "--select", "I,RUF022", "."]]
    commands += [["ruff", "format", "-q", "--no-cache", "."], ["clang-format", "-i", *sources]]
    missing = []
    for program, *arguments in commands:
        where = shutil.which(program, path=tools) or shutil.which(program)
        if where:
            done = subprocess.run([where, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                said = (done.stdout + done.stderr).strip() or f"exit status {done.returncode}"
                raise Refused(
                    f"{folder} is written, but {program} could not format it: {shortened(said)}. Its "
                    "lines are wrapped for the old names."
                )
        else:
            missing.append(program)
    return list(dict.fromkeys(missing))


def make(
    name: str,
    folder: Path,
    bare: bool = False,
    prefix: str | None = None,
    root: Path = ROOT,
) -> tuple[Names, list[str]]:
    """Writes the repository; returns its names, and the formatters that were not found.

    @throws Refused if a name or the folder will not do; nothing is written then
    """
    tree = read(root)
    check_name(name, tree)
    check_old_name(tree)
    names = Names(name, tree, prefix)
    make_folder(folder, root)
    modes = {names.rename(path): (root / path).stat().st_mode for path in tree}
    leave_out_the_reference(tree)
    begin_the_changelog(tree)
    if bare:
        new_driver.leave_out_the_device(tree)
    if part_of_words(name, tree):
        # The new tree cannot be renamed in its turn, so it does not test that.
        pruning.leave_out(tree, {path for path in tree if path.startswith(OURS)})
    pruning.leave_out_links_to_sections(tree)
    new = renamed(tree, names)
    name_the_origin(new, name, tree)
    write(new, folder, modes)
    return names, format_code(folder)


def make_first(
    name: str, folder: Path, torch: str, prefix: str | None = None, root: Path = ROOT
) -> tuple[Names, list[str]]:
    """The same for the backend in a thousand lines, which needs the release `torch`."""
    tree = read(root)
    staged = new_first.stage(tree, torch)
    check_name(name, staged)
    names = Names(name, staged, prefix)
    make_folder(folder, root)
    new = renamed(staged, names)
    name_the_origin(new, name, tree)
    write(new, folder, {})
    return names, format_code(folder)
