# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor asks, in a process of its own. Needs no package but PyTorch.

Prints one JSON object a line: first what is registered for the device, then how each probe
ended. The arguments are the device's name, the module that registers it or nothing, and the
number of the first probe.
"""

import collections
import importlib
import importlib.metadata
import io
import json
import sys
import warnings

import torch

# [python.doctor.probes] A probe is a program of one line that a complete backend runs, with the page about it.
PROBES = [
    ("device", "torch.device(D)"),
    ("device", "torch.get_device_module(D)"),
    ("device/streams", "torch.Stream(D).synchronize()"),
    ("device/streams", "torch.Event(D).query()"),
    ("device", "torch.accelerator.synchronize()"),
    ("device/memory", "torch.UntypedStorage(8, device=D)"),
    ("device/memory", "torch.accelerator.memory_allocated()"),
    ("hooks", "torch._C._get_accelerator()"),
    ("hooks", "answered(torch._C._accelerator_hooks_device_count())"),
    ("hooks", "torch._C._accelerator_hooks_get_current_device()"),
    ("hooks", "torch._C._accelerator_hooks_set_current_device(0)"),
    ("hooks", "torch._C._accelerator_hooks_exchange_device(0)"),
    ("hooks", "torch._C._accelerator_hooks_maybe_exchange_device(0)"),
    ("hooks", "torch.Generator(D).manual_seed(1)"),
    ("hooks", "torch.ops.aten.manual_seed(answered(torch._C._accelerator_hooks_device_count()))"),
    ("hooks", "torch.ones(2).pin_memory()"),
    ("hooks", "answered(torch.ones(2).pin_memory().is_pinned())"),
    ("hooks", "with torch.random.fork_rng(device_type=D): pass"),
    ("hooks/storage", "torch.UntypedStorage(8, device=D).resize_(16)"),
    ("operators/minimal", "torch.empty(2, device=D)"),
    ("operators/minimal", "torch.ones(2, device=D).cpu()"),
    ("operators/minimal", "repr(torch.ones(2, device=D)[1:])"),
    ("operators", "torch.ones(2, device=D) + 1"),
    ("operators", "torch.ones(2, device=D, requires_grad=True).sum().backward()"),
    ("operators/random", "torch.rand(2, device=D)"),
    ("operators/layers", "torch.nn.LSTM(2, 2, device=D)(torch.ones(1, 1, 2, device=D))"),
    ("operators/attention", "F.scaled_dot_product_attention(*torch.ones(3, 1, 2, 2, device=D))"),
    ("hooks/storage", "torch.save(torch.ones(2, device=D), io.BytesIO())"),
    ("amp", "with torch.autocast(D): torch.ones(2, 2, device=D) @ torch.ones(2, 2, device=D)"),
    ("amp", "torch.amp.GradScaler(D).scale(torch.ones(1, device=D))"),
    ("profiler", "profiled_kernels(D)"),
    ("graphs", "torch.accelerator.Graph()"),
    ("compile", "inductor_backend(D)"),
    ("distributed", "torch.distributed.get_default_backend_for_device(D)"),
]


# [python.doctor.silent] Some things are missing without an error, so these functions raise one.
def answered(value):
    """Some hooks answer 0 or False by default."""
    if not value:
        raise LookupError("the answer is PyTorch's default")
    return value


def profiled_kernels(device):
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        torch.ones(2, device=device).cpu()
    if all(event.device_type == DeviceType.CPU for event in profiled.events()):
        raise LookupError("the profile has no event of the device")


def inductor_backend(device):
    from torch._inductor.codegen import common

    common.init_backend_registration()
    if device not in common.device_codegens:
        raise LookupError(f"Inductor has no code generator for {device}")


# [python.doctor.load] A backend takes the one place that PyTorch has, so only the one in question is loaded.
UNNAMED = "privateuseone"


def load(device, module):
    """Registers the device; returns the module that did it, or an empty text if none could.

    @throws Refused if the device cannot be on PrivateUse1, or if the module is for another one
    """
    if device != UNNAMED and is_known(device):
        raise Refused(
            f"{device} is a device of PyTorch's own; the doctor examines backends on PrivateUse1."
        )
    by = module
    if module:
        import_module(module)
    for entry in importlib.metadata.entry_points(group="torch.backends"):
        if not by and device in entry.name.split("_"):
            entry.load()()
            by = entry.value.partition(":")[0]
    # A bare name: what is asked next would otherwise have one answer only.
    if not by and device != UNNAMED:
        torch.utils.rename_privateuse1_backend(device)
    name = torch._C._get_privateuse1_backend_name()
    if name != device:
        known = f"it registers {name}" if name != UNNAMED else "it registers no device"
        raise Refused(f"{by} does not register {device}; {known}.")
    return by


# [python.doctor.load.refused] What cannot be examined is refused in a sentence.
class Refused(Exception):
    """Says what was wrong with the arguments."""


def is_known(device):
    """Whether PyTorch accepts the name before any backend is loaded."""
    try:
        torch.device(device)
    except RuntimeError:
        return False
    return True


def import_module(module):
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # The module is there, and something that it needs is not.
        raise Refused(f"There is no module {module}; --import names what to import.") from None


# [python.doctor.operators] The dispatcher says for each operator of ATen what a call would run.
def operators():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    composite = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    fallback = torch._C._dispatch_has_backend_fallback(torch._C.DispatchKey.PrivateUse1)
    counts = collections.Counter()
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        if has(name, "PrivateUse1"):
            counts["kernels"] += 1
        elif any(has(name, key) for key in composite):
            counts["composite"] += 1
        elif has(name, "CompositeImplicitAutograd"):
            counts["parts"] += 1
        elif not has(name, "CPU"):
            counts["nowhere"] += 1
        else:
            counts["fallback" if fallback else "missing"] += 1
    counts["memory"] = has("aten::empty.memory_format", "PrivateUse1")
    rules = torch._C._dispatch_get_registrations_for_dispatch_key
    counts["autocast"] = len(rules("AutocastPrivateUse1"))
    counts["autocast_cpu"] = len(rules("AutocastCPU"))
    return counts


# [python.doctor.registered] Facts that are no programs.
def registered(device, module):
    facts = {"loaded by": load(device, module), "torch": torch.__version__}
    package = sys.modules.get(facts["loaded by"].partition(".")[0])
    facts["version"] = getattr(package, "__version__", "")
    built = f"{package.__name__}._chapters" if package else ""
    facts["chapters"] = list(getattr(sys.modules.get(built), "CHAPTERS", []))
    names = [name for name in dir(getattr(torch, device, None)) if not name.startswith("_")]
    facts["names"] = len(names) if hasattr(torch, device) else 0
    facts["entry points"] = [
        f"{entry.dist.name} {entry.dist.version}: {entry.value}"
        for entry in importlib.metadata.entry_points(group="torch.backends")
    ]
    return facts | {"operators": operators()}


# [python.doctor.ask] A probe announces itself first, so that a crash has a name.
def ask(device, first):
    names = {"torch": torch, "io": io, "F": torch.nn.functional, "D": device}
    names |= {one.__name__: one for one in (answered, profiled_kernels, inductor_backend)}
    for number, (_, program) in enumerate(PROBES[first:], first):
        say({"begins": number})
        try:
            exec(program, names)
            say({"ended": number, "error": ""})
        except BaseException as error:
            sentence = (str(error).strip() or "without a message").splitlines()[0]
            say({"ended": number, "error": f"{type(error).__name__}: {sentence}"})


ANSWER = "torch_openreg.doctor: "  # A backend may print, too.


def say(answer):
    print(ANSWER + json.dumps(answer), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked, by, start = sys.argv[1:]
    try:
        if start == "0":
            say(registered(asked, by))
        else:
            load(asked, by)
    except Refused as refused:
        say({"refused": str(refused)})
    else:
        ask(asked, int(start))

# [-]
