# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program under every order of its device commands that streams and events allow.

python -m torch_openreg.explore program.py               whether its result depends on the order
python -m torch_openreg.explore --svg race.svg program.py    and a picture of the missing edge

Orders count once if they differ only in commands that do not share memory. The result of a run is
what it prints, and its exit code. This command ends with code 0 if all results are the same, with 1
if they differ, and with 2 if the program could not be explored.
"""

import argparse
import dataclasses
import itertools
import os
import sys

from . import explore_picture
from .explore_child import run
from .explore_search import NotRepeatable, Search


# [profiler.explore.explore] Within the bound every class is visited; beyond it, orders are drawn at random.
@dataclasses.dataclass
class Exploration:
    """All runs that were made of a program; the first one is in the order of the program."""

    runs: list
    is_complete: bool
    samples: list  # runs in random orders, unless it is complete

    @property
    def results(self):
        """The runs of each result, the usual one first."""
        found = {}
        for each in [*self.runs, *self.samples]:
            found.setdefault(each.result, []).append(each)
        return found


def explore(program, arguments=(), bound=1000, samples=100, seconds=60):
    """The `Exploration` of a program.

    Raises NotRepeatable if the program does not do the same when it is run in the same order.
    """

    def run_once(order, last):
        rest = [f"-{stream}" for stream in last]
        return run(program, arguments, order, seconds, rest)

    usual = run_once([], [])
    if run_once([], []).result != usual.result:
        raise NotRepeatable
    # One more order than the bound says that there are more.
    found = list(itertools.islice(Search(run_once).orders(), bound + 1))
    is_complete = len(found) <= bound
    seeds = range(0 if is_complete else samples)
    drawn = [run(program, arguments, (), seconds, [f"seed:{seed}"]) for seed in seeds]
    return Exploration(found, is_complete, drawn)


# [profiler.explore.shortest] A schedule ends where the order of the program goes on, so each beginning of a longer one is tried.
def shortest(program, arguments, exploration, seconds=60):
    """The run with the fewest choices, of those that begin like one that was made, with another result than the usual one."""
    usual = exploration.runs[0].result
    differing = [
        each for runs in exploration.results.values() for each in runs if each.result != usual
    ]
    tried = set()
    for length in range(1, max(len(each.choices) for each in differing) + 1):
        for each in differing:
            order = each.choices[:length]
            if order in tried:
                continue
            tried.add(order)
            made = run(program, arguments, order, seconds)
            if made.result != usual and made.is_as_asked:
                return made
    return differing[0]


# [profiler.explore.say] The report says how sure it is.
def counted(number, what):
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def first_lines(text, most=5):
    lines = text.splitlines()
    more = [f"... and {counted(len(lines) - most, 'line')} more"] if len(lines) > most else []
    return "".join(f"      {line}\n" for line in [*lines[:most], *more])


def summary(program, exploration):
    number, results = len(exploration.runs), len(exploration.results)
    orders = counted(number, "order")
    if not exploration.is_complete:
        samples = len(exploration.samples)
        orders = (
            f"more than {counted(number - 1, 'order')}, and of {number} and {samples} at random"
        )
    if results > 1:
        how = counted(results, "result")
    else:
        how = "one result" if number == 1 else "the same result in all"
    comma = "," if exploration.is_complete else ""
    return f"{os.path.basename(program)} has {orders}{comma} {how}.\n"


# [profiler.explore.describe] Where results differ, one schedule shows it, and one picture says why.
def describe(program, arguments, exploration, svg=None, seconds=60):
    """The report, and the picture in the file `svg`."""
    text = summary(program, exploration)
    if len(exploration.results) == 1:
        return text
    usual = exploration.runs[0]
    for (code, out), runs in exploration.results.items():
        also = ", the order of the program among them" if runs[0] is usual else ""
        text += f"  In {counted(len(runs), 'order')}{also}, it ends with code {code} and prints\n"
        text += first_lines(out) or "      nothing\n"
    other = shortest(program, arguments, exploration, seconds)
    command = " ".join(["python", program, *arguments])
    text += "\nThe shortest order with another result:\n"
    text += f"  OPENREG_SCHEDULE={other.schedule} {command}\n"
    pair = explore_picture.reversed_pair(usual.steps, other.steps)
    if pair is None:
        return text
    early, late = pair
    picture = explore_picture.Picture.of(other.steps, early, late)
    if svg:
        with open(svg, "w", encoding="utf-8") as file:
            file.write(explore_picture.as_svg(picture))
    return text + "\n" + explore_picture.as_text(picture) + "\n" + remedy(other.steps, early, late)


def remedy(steps, early, late):
    first, second = steps[late], steps[early]
    where = f" at {os.path.basename(second.line)}" if second.line else ""
    if second.stream == "host":
        edge = f"the host did not wait for stream {first.stream}"
    elif first.stream == "host":
        edge = f"stream {second.stream} did not wait for the host"
    else:
        edge = f"stream {second.stream} did not wait for stream {first.stream}"
    return (
        f"{second.name}{where} shares memory with {first.name} and ran before it, because {edge}.\n"
        "OPENREG_SANITIZE=races says which call is missing.\n"
    )


# [profiler.explore.main] The explorer runs programs in forks of itself, so it must not start the devices.
def main():
    parser = argparse.ArgumentParser(
        "python -m torch_openreg.explore",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bound", type=int, default=1000, help="at most so many orders")
    parser.add_argument("--samples", type=int, default=100, help="random orders beyond the bound")
    parser.add_argument("--seconds", type=float, default=60, help="of one run at most")
    parser.add_argument("--svg", metavar="FILE", help="for the picture")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not os.path.isfile(options.program):
        parser.error(f"There is no program {options.program}.")
    what = options.program, options.arguments
    try:
        exploration = explore(*what, options.bound, options.samples, options.seconds)
        print(describe(*what, exploration, options.svg, options.seconds), end="")
    except NotRepeatable:
        parser.error(
            f"{options.program} does not do the same twice in the same order; the time, an address, "
            "or random numbers without a seed may decide what it prints."
        )
    sys.exit(len(exploration.results) > 1)


if __name__ == "__main__":
    main()

# [-]
