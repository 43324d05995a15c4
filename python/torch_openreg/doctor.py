# SPDX-License-Identifier: BSD-3-Clause
"""Says what a backend has registered, what fails when it is called, and what to do next.

python -m torch_openreg.doctor                    this backend
python -m torch_openreg.doctor --device other     another one on PrivateUse1, or only a name
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from .doctor_probes import ANSWER, PROBES

# [python.doctor.child] The probes run in a process that may crash; the next one goes on behind the crash.
SECONDS = 120


def examine(device, module=""):
    """What is registered, and for each probe its error, which is empty if it ran."""
    facts, errors, first = {}, {}, 0
    while first < len(PROBES):
        program = Path(__file__).with_name("doctor_probes.py").read_text("utf-8")
        command = [sys.executable, "-c", program, device, module, str(first)]
        env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes, text=True, env=env) as child:
            try:
                out, err = child.communicate(timeout=SECONDS)
                end = f"the process ended with {child.returncode}"
            except subprocess.TimeoutExpired:
                child.kill()
                out, err = child.communicate()
                end = f"no answer in {SECONDS} seconds"
        told = [line.partition(ANSWER) for line in out.splitlines()]
        answers = [json.loads(answer) for _, mark, answer in told if mark]
        if answers and "refused" in answers[0]:
            sys.exit(answers[0]["refused"])
        if not answers:
            sys.exit(f"PyTorch could not be asked about {device}:\n{err[-2000:]}")
        facts = facts or answers[0]
        errors |= {one["ended"]: one["error"] for one in answers if "ended" in one}
        first = max([first, *(one["begins"] for one in answers if "begins" in one)])
        errors.setdefault(first, end)
        first += 1
    return facts, [errors[number] for number in range(len(PROBES))]


# [python.doctor.table] Where a thing is registered, and which probe shows that it is.
SHOWN_BY = {
    "guard": "torch.Stream(D).synchronize()",
    "allocator": "torch.UntypedStorage(8, device=D)",
    "its statistics": "torch.accelerator.memory_allocated()",
    "profiler": "profiled_kernels(D)",
    "graphs": "torch.accelerator.Graph()",
    "compile": "inductor_backend(D)",
    "distributed": "torch.distributed.get_default_backend_for_device(D)",
}
# The hooks that a program in Python reaches without an operator.
COUNT = "answered(torch._C._accelerator_hooks_device_count())"
HOOKS = {
    "isAvailable": "torch._C._get_accelerator()",
    "deviceCount": COUNT,
    "getCurrentDevice": "torch._C._accelerator_hooks_get_current_device()",
    "setCurrentDevice": "torch._C._accelerator_hooks_set_current_device(0)",
    "exchangeDevice": "torch._C._accelerator_hooks_exchange_device(0)",
    "maybeExchangeDevice": "torch._C._accelerator_hooks_maybe_exchange_device(0)",
    "getNewGenerator": "torch.Generator(D).manual_seed(1)",
    "getDefaultGenerator": f"torch.ops.aten.manual_seed({COUNT})",
    "getPinnedMemoryAllocator": "torch.ones(2).pin_memory()",
    "isPinnedPtr": "answered(torch.ones(2).pin_memory().is_pinned())",
    "resizePrivateUse1Bytes": "torch.UntypedStorage(8, device=D).resize_(16)",
}


# [python.doctor.table.rows] Numbers are those of the dispatcher, and only as exact as they need to be.
def table(device, facts, errors):
    """The rows of what is registered."""
    ran = {program: not error for (_, program), error in zip(PROBES, errors)}
    count = facts["operators"].get
    yield (
        "name",
        f"{device}, by {facts['loaded by']}" if facts["loaded by"] else "no backend has it",
    )
    yield "entry points", "; ".join(facts["entry points"]) or "none"
    yield f"torch.{device}", f"{facts['names']} public names" if facts["names"] else "no"
    for what, program in SHOWN_BY.items():
        yield what, "yes" if ran[program] else "no"
    yield from listed("hooks overridden", [hook for hook in HOOKS if ran[HOOKS[hook]]])
    yield from listed("hooks left to PyTorch", [hook for hook in HOOKS if not ran[HOOKS[hook]]])
    yield "operators", f"{about(count('kernels', 0))} kernels"
    yield "", f"{about(count('composite', 0))} that PyTorch has for every backend"
    yield "", f"{about(count('parts', 0))} that PyTorch takes apart"
    yield "", f"{about(count('fallback', 0))} that fall back to the CPU"
    yield "", f"{about(count('missing', 0) + count('nowhere', 0))} without a kernel"
    yield "autocast", f"{about(count('autocast', 0))} rules"


def listed(what, names):
    """The rows of a list: the first has the name."""
    for number, line in enumerate(textwrap.wrap(", ".join(names) or "none", 72)):
        yield "" if number else what, line


def about(number):
    """Two digits are enough to compare steps."""
    return str(number) if number < 100 else f"about {float(f'{number:.2g}'):,.0f}"


# [python.doctor.next] First what everything else stands on, in its order; then by the operators that run after a step.
FOUNDATION = ("device", "device/streams", "device/memory", "hooks", "operators/minimal")


def steps(facts, errors):
    """(operators, probes, what to do, page), in the order in which to do them."""
    count = facts["operators"].get
    ready = count("composite", 0) + count("parts", 0)
    failed = [page for (page, _), error in zip(PROBES, errors) if error]
    worth = {
        "operators/minimal": (0 if count("memory") else ready, "make memory for tensors, and copy"),
        "operators/fallback": (count("missing", 0), "fall back to the CPU"),
        "operators/library": (count("fallback", 0), "run on the device what now runs on the CPU"),
        "amp": (0 if count("autocast") else count("autocast_cpu", 0), "rules for autocast"),
    }
    found = []
    for page in dict.fromkeys([*failed, *worth]):
        operators, what = worth.get(page, (0, ""))
        if operators or page in failed:
            found.append((operators, failed.count(page), what, page))
    first = [step for page in FOUNDATION for step in found if step[-1] == page]
    rest = [step for step in found if step not in first]
    return first + sorted(rest, key=lambda step: step[:2], reverse=True)


# [python.doctor.report] The report, in the order in which a newcomer asks.
def report(device, facts, errors):
    version = f"{facts['loaded by']} {facts['version']}".strip() or "no backend"
    print(
        f"{version}, PyTorch {facts['torch'].partition('+')[0]}, Python {platform.python_version()}"
    )
    if facts["chapters"]:
        print(f"chapters built: {', '.join(facts['chapters'])}")
    print("\nwhat is registered")
    for what, answer in table(device, facts, errors):
        print(f"  {what:<22} {answer}".rstrip())
    print(f"\nwhat fails, of {len(errors)} programs")
    for error in dict.fromkeys(filter(None, errors)):
        print(f"  {textwrap.shorten(error, 96, placeholder=' ...')}")
        for (_, program), other in zip(PROBES, errors):
            if other == error:
                shown = program.replace("=D", f'="{device}"').replace("(D", f'("{device}"')
                print(f"      {shown}")
    print("\nwhat to do next")
    ranked = steps(facts, errors)
    for operators, probes, what, page in ranked:
        gains = [f"{about(operators)} operators"] * bool(operators)
        gains += [f"{probes} of the programs above"] * bool(probes)
        print(f"  {f'docs/{page}.md':<28} {what + ': ' if what else ''}{', '.join(gains)}")
    if not ranked:
        print("  nothing; python -m torch_openreg.conformance judges the results")


# [python.doctor.main] The command line.
def main():
    parser = argparse.ArgumentParser(
        "python -m torch_openreg.doctor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", default="openreg")
    parser.add_argument("--import", dest="module", default="", help="what registers the device")
    options = parser.parse_args()
    if not re.fullmatch("[a-z]+(_[a-z]+)*", options.device):
        parser.error(
            f"{options.device!r} cannot name a device: PyTorch reads lower-case letters, and "
            "underscores between them."
        )
    ours = options.device == "openreg" and not options.module
    report(options.device, *examine(options.device, "torch_openreg" if ours else options.module))


if __name__ == "__main__":
    main()

# [-]
