# SPDX-License-Identifier: BSD-3-Clause
"""Runs a small reproducer for each place where PyTorch treats this device unlike CUDA.

    python tools/inequality.py              the table of docs/inequality.md
    python tools/inequality.py --check      one line for each row, and what is no longer so

The rows are in tools/inequalities. A reproducer returns what the device gets, as a
short text. What CUDA gets is either the result of the same reproducer for "cuda",
with fake tensors where it needs tensors, or, where only a GPU could tell, a text
that we read in PyTorch's source. A row is unequal while the two texts differ.
"""

import argparse
import contextlib
import importlib
import inspect
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

NAME = "openreg"
AREAS = {
    "tensors": "Tensors, storages and devices",
    "training": "Models and training",
    "programs": "Programs captured as graphs",
    "inductor": "Inductor",
    "collectives": "torch.distributed",
    "testing": "PyTorch's own tests",
    "equal": "Equal now",
}
ROWS = []
BROKEN = "the reproducer failed"


@dataclass
class Row:
    """One place; `mended` is the first release in which the device gets what CUDA gets."""

    what: str
    place: str  # a file below site-packages, or below PyTorch's source tree
    quote: (
        str | tuple
    )  # of a line of that file, or of one for each release; empty if it is not installed
    means: str
    here: str
    probe: object
    cuda: str = ""  # read in the source; if empty, the reproducer is run for "cuda", too
    mended: str = ""

    @property
    def area(self):
        return self.probe.__module__.rpartition(".")[2]

    @property
    def name(self):
        return f"{self.area}.{self.probe.__name__}"

    def quote_stands(self):
        """Whether the installed file still has the line that makes the difference."""
        file = Path(torch.__file__).parents[1] / self.place
        quotes = self.quote if isinstance(self.quote, tuple) else (self.quote,)
        text = file.read_text() if file.exists() else ""
        return not self.quote or any(quote in text for quote in quotes)

    def observe(self):
        """What CUDA and what the device gets."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.cuda:
                return self.cuda, str(self.probe())
            return str(self.probe("cuda")), str(self.probe(NAME))

    def expected(self):
        """How the row must end with the installed release: "unequal" or "equal"."""
        release = [int(part) for part in re.findall(r"\d+", torch.__version__)[:2]]
        mended = [int(part) for part in self.mended.split(".") if part]
        return "equal" if mended and release >= mended else "unequal"


def row(what, place, quote, *, means, here, cuda="", mended=""):
    """Makes a row of the reproducer below it."""

    def add(probe):
        ROWS.append(Row(what, place, quote, means, here, probe, cuda, mended))
        return probe

    return add


# What the reproducers use.


def outcome(function, *arguments, **options):
    """ "accepted", or the error's type and the beginning of its first line."""
    try:
        function(*arguments, **options)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        return shortened(f"{type(error).__name__}: {first}")
    return "accepted"


def shortened(text, length=100):
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0] + " ..."


@contextlib.contextmanager
def tensors_of(device):
    """Makes the tensors inside fake ones, so that there may be some of a GPU that is not there."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        yield torch.device(device, 0)


def calls(function, operator):
    """ "one operator" if `function` reaches `operator`, and "composed" if it reaches others."""
    from torch.utils._python_dispatch import TorchDispatchMode

    reached = set()

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            reached.add(function.__name__.split(".")[0])
            return function(*arguments, **options or {})

    with Record():
        function()
    return "one operator" if operator in reached else "composed"


# The results.


def rows():
    """All rows, in the order of the page."""
    if not ROWS:
        sys.path.insert(0, str(Path(__file__).parent))
        # This file is `__main__` when it is run; the rows must find the same one.
        sys.modules.setdefault("inequality", sys.modules[__name__])
        for area in [
            a for a in AREAS if (Path(__file__).parent / "inequalities" / f"{a}.py").exists()
        ]:
            importlib.import_module(f"inequalities.{area}")
    return ROWS


def results():
    """Each row with what CUDA gets and what the device gets."""
    found = []
    for each in rows():
        try:
            found.append((each, *each.observe()))
        except Exception as error:
            found.append((each, BROKEN, shortened(f"{type(error).__name__}: {error}")))
    return found


def table(found):
    """The tables of docs/inequality.md."""
    lines = [f"The results are those of torch {torch.__version__.split('+')[0]}.", ""]
    for area, title in AREAS.items():
        here = [each for each in found if each[0].area == area]
        lines += [f"## {title}", ""]
        if area == "equal":
            lines += ["| what | where | both get |", "|---|---|---|"]
            lines += [line(each.what, f"`{each.place}`", f"`{ours}`") for each, _, ours in here]
        else:
            lines += ["| what, and where | CUDA | openreg | what follows, and what we do |"]
            lines += ["|---|---|---|---|"]
            lines += [unequal(*each) for each in here]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def unequal(each, cuda, ours):
    theirs = f"*{cuda}*" if each.cuda else f"`{cuda}`"
    mended = f" Equal from {each.mended} on." if each.mended else ""
    end = f"{each.means} {each.here}".rstrip() + mended
    return line(f"{each.what}; `{each.place}`", theirs, f"`{ours}`", end)


def line(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def surprises(found):
    """A sentence for each row that the installed release has changed."""
    release = torch.__version__.split("+")[0]
    for each, cuda, ours in found:
        if cuda == BROKEN:
            yield f"{each.name}: {BROKEN} with torch {release}: {ours}"
            continue
        now = "equal" if cuda == ours else "unequal"
        wanted = "equal" if each.area == "equal" else each.expected()
        if now != wanted:
            yield (
                f"{each.name} is {now} with torch {release}: CUDA gets {cuda!r}, "
                f"{NAME} {ours!r}; say so in tools/inequalities/{each.area}.py."
            )
        if not each.quote_stands() and now == "unequal":
            yield f"{each.name}: torch {release} no longer has {each.quote!r} in {each.place}."


def main():
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--check", action="store_true", help="say what is no longer so")
    checking = parser.parse_args().check
    found = results()
    if not checking:
        print(table(found), end="")
        return 0
    for each, cuda, ours in found:
        print(f"{'equal now' if cuda == ours else 'unequal':9} {each.name}: {cuda} / {ours}")
    changed = list(surprises(found))
    print("\n".join(changed) if changed else f"All {len(found)} rows are as the table says.")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
