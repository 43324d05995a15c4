# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others that use streams, under the sanitizer: as they are, and without each of their waits.

python tests/races/libraries.py            all of them, and the table of docs/profiler/races.md
python tests/races/libraries.py NAME ...   only these
python tests/races/libraries.py --install  fetches the libraries into build-libraries, without what they need

The files that use streams are read as text, in which `openreg` takes the place of `cuda` where it names a device. What
they import of other files is replaced by classes that do nothing.
"""

import argparse
import copy
import importlib
import importlib.abc
import importlib.util
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build-libraries"
RACED = 66  # the exit code of a process with races
WAIT = re.compile(
    r"( +)[\w.()\[\]=, ]+\.(?:wait_stream|wait_event|record_stream|synchronize)\(.*\)(?: if .* else .*)?\n?"
)


class Library(NamedTuple):
    """The files of `package` that use streams, as modules, and a program that uses them."""

    package: str
    modules: tuple[str, ...]
    program: Callable[[types.ModuleType], bool]
    absent: tuple[str, ...] = ()  # packages that are not there
    given: Mapping = types.MappingProxyType({})  # what is there of them


class AbsentType(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


class Absent(metaclass=AbsentType):
    """Whatever a file imports of a package that is not there."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return Absent()

    def __call__(self, *_, **__):
        return Absent()

    def __bool__(self):
        return False


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the files of a library for our device, `without` one of their lines."""

    def __init__(self, library, without):
        self.library, self.without, self.reached = library, without, {}

    def find_spec(self, name, path, target=None):
        roots = (self.library.modules[0].partition(".")[0], *self.library.absent)
        root = name.partition(".")[0]
        if name in self.library.modules or (root != "torch" and root in roots):
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def exec_module(self, module):
        name = module.__spec__.name
        if name not in self.library.modules:
            module.__path__ = []
            module.__getattr__ = partial(getattr, Absent)
            vars(module).update(self.library.given.get(name, {}))
            return
        module.__package__ = name.rpartition(".")[0]
        module.__file__ = str(source(self.library.package, name))
        lines = text(self.library.package, name).splitlines(keepends=True)
        for number, line in enumerate(lines):
            if found := WAIT.fullmatch(line):
                place = f"{name}:{number + 1}"
                rest = "pass\n" if place == self.without else line.lstrip()
                lines[number] = f"{found[1]}_reached[{place!r}] = None; {rest}"
        module._reached = self.reached
        exec(compile("".join(lines), module.__file__, "exec"), module.__dict__)


def source(package, module):
    folder = Path(torch.__file__).parents[1] if package == "torch" else FOLDER / package
    return folder / (module.replace(".", "/") + ".py")


def text(package, module):
    found = source(package, module).read_text("utf-8")
    return re.sub(r"(?<=torch\.)(cuda|xpu)\b|(?<=[\"'])(cuda|xpu)(?=[\"'])", "openreg", found)


# The programs. Each says whether the device has the numbers of the CPU.


def network():
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(96, 96), nn.LayerNorm(96), nn.GELU()) for _ in range(6)]
    return nn.Sequential(*blocks)


def same(ours, theirs):
    pairs = zip(ours, theirs, strict=True)
    return all(torch.allclose(a.cpu(), b, rtol=1e-4, atol=1e-5) for a, b in pairs)


def train(step, network, steps=4):
    for seed in range(steps):
        torch.manual_seed(seed)
        step(network, torch.randn(64, 96))


def plain_step(net, batch):
    net(batch.to(next(net.parameters()).device)).square().mean().backward()


def prefetch(loader):
    """Two epochs of images from `loader(data)`, which moves them to the device ahead of their use."""
    torch.manual_seed(0)
    images, labels = (torch.rand(40, 3, 32, 32) * 255).to(torch.uint8).float(), torch.arange(40)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), 4)
    layer, found = nn.Conv2d(3, 8, 3).to("openreg"), []
    for _ in range(2):
        for batch in loader(data):
            result = layer(batch[0]).mean((1, 2, 3))
            result.sum().backward()
            found.append(result.detach())
            del batch
    return same([torch.cat(found)], [layer.cpu()(images).mean((1, 2, 3)).repeat(2)])


def torch_geometric(module):
    return prefetch(lambda data: module.PrefetchLoader(data, "openreg"))


def timm(module):
    options = {"device": torch.device("openreg"), "mean": (0.0,) * 3, "std": (1 / 255,) * 3}
    return prefetch(lambda data: module.PrefetchLoader(data, **options))


def torchao(module):
    ours, theirs = network().to("openreg"), network()
    optimizers = (
        module.CPUOffloadOptimizer(ours.parameters(), fused=False, offload_gradients=True),
        torch.optim.AdamW(theirs.parameters()),
    )

    def step(net, batch):
        plain_step(net, batch)
        optimizers[net is theirs].step()
        optimizers[net is theirs].zero_grad()

    train(step, ours), train(step, theirs)
    return same(ours.parameters(), theirs.parameters())


def offloaded_activations(module):
    def step(net, batch):
        with module.OffloadActivations():
            loss = net(batch.to("openreg")).square().mean()
        loss.backward()

    ours, theirs = network().to("openreg"), network()
    train(step, ours), train(plain_step, theirs)
    return same(*([each.grad for each in net.parameters()] for net in (ours, theirs)))


def to_device(inputs, device, **_):
    return [each.to(device) for each in inputs] if isinstance(inputs, tuple) else inputs


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.begin, self.end = nn.Linear(96, 96), nn.Linear(96, 96)
        self.blocks = nn.ModuleList(network())

    def forward(self, x):
        x = self.begin(x)
        for block in self.blocks:
            x = block(x)
        return self.end(x)


def diffusers(module, make, **options):
    torch.manual_seed(0)
    ours = make()
    theirs = copy.deepcopy(ours)
    devices = {"onload_device": torch.device("openreg"), "offload_device": torch.device("cpu")}
    module.apply_group_offloading(ours, use_stream=True, **devices, **options)
    inputs = [torch.randn(64, 96) for _ in range(4)]
    with torch.no_grad():
        return same([ours(x.to("openreg")) for x in inputs], [theirs(x) for x in inputs])


def fsdp(module):
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group(
        "orccl", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    ours, theirs = network().to("openreg"), network()
    for each in (*ours, ours):
        fully_shard(each)
    train(plain_step, ours), train(plain_step, theirs)
    gradients = [each.grad.full_tensor() for each in ours.parameters()]
    equal = same(gradients, [each.grad for each in theirs.parameters()])
    torch.distributed.destroy_process_group()
    return equal


def staging(module):
    """Saves a model while it is trained, and waits where PyTorch's tutorial does: before the next step."""
    ours, theirs = network().to("openreg"), network()
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in (ours, theirs)]
    stager, saved, expected = module.DefaultStager(), None, None
    for seed in range(4):
        torch.manual_seed(seed)
        batch = torch.randn(64, 96)
        for net in (ours, theirs):
            plain_step(net, batch)
        if saved and not same(saved.result().values(), expected):
            return False
        for optimizer in optimizers:
            optimizer.step()
        expected = [each.clone() for each in theirs.state_dict().values()]
        saved = stager.stage(ours.state_dict())
    return same(saved.result().values(), expected)


SHARDED = "torch.distributed.fsdp._fully_shard._fsdp_"
HOOKS = "diffusers.hooks."
LIBRARIES = {
    "torch_geometric": Library(
        "torch_geometric==2.8.1", ("torch_geometric.loader.prefetch",), torch_geometric
    ),
    "timm_before": Library("timm==1.0.26", ("timm.data.loader",), timm),
    "timm": Library("timm==1.0.31", ("timm.data.loader",), timm),
    "torchao": Library(
        "torchao==0.18.0",
        ("torchao.optim.cpu_offload",),
        torchao,
        given={"torchao.utils": {"get_available_devices": lambda: ["openreg"]}},
    ),
    "torchtune": Library(
        "torchtune==0.6.1",
        ("torchtune.training._activation_offloading",),
        offloaded_activations,
        absent=("torchao",),
    ),
    "trl": Library(
        "trl==1.16.0",
        ("trl.models.activation_offloading",),
        offloaded_activations,
        absent=("accelerate", "transformers"),
    ),
    "fsdp": Library(
        "torch", tuple(SHARDED + each for each in ("param_group", "collectives", "state")), fsdp
    ),
    "staging": Library("torch", ("torch.distributed.checkpoint.staging",), staging),
}
for name, make, options in (
    ("leaves", Blocks, {"offload_type": "leaf_level"}),
    ("leaves_recorded", Blocks, {"offload_type": "leaf_level", "record_stream": True}),
    ("blocks", Blocks, {"offload_type": "block_level", "num_blocks_per_group": 1}),
    ("blocks_only", network, {"offload_type": "block_level", "num_blocks_per_group": 1}),
):
    LIBRARIES[f"diffusers_{name}"] = Library(
        "diffusers==0.42.1",
        (HOOKS + "group_offloading", HOOKS + "hooks", "diffusers.utils.torch_utils"),
        partial(diffusers, make=make, **options),
        absent=("accelerate", "safetensors"),
        given={
            "diffusers.utils": {"is_accelerate_available": lambda: True},
            "diffusers.utils.import_utils": {"is_torch_available": lambda: True},
            "accelerate.utils": {"send_to_device": to_device},
            HOOKS + "_common": {"_GO_LC_SUPPORTED_PYTORCH_LAYERS": (nn.Linear, nn.LayerNorm)},
        },
    )


# What is said of them.


def install():
    for package in {each.package for each in LIBRARIES.values()} - {"torch"}:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", FOLDER / package, package], check=True)


def run(name, without=""):
    """Whether there was a race, whether the numbers were right, the waits that were reached, and the reports."""
    command = [sys.executable, __file__, "--run", name, f"--without={without}"]
    environment = {**os.environ, "OPENREG_SANITIZE": "races"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, RACED):
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    right, *reached = done.stdout.splitlines()
    return done.returncode == RACED, right == "True", reached, done.stderr


def judge(name):
    """A line of the table, and what it leaves open: waits without which the sanitizer finds nothing."""
    raced, right, reached, said = run(name)
    results = {wait: run(name, wait) for wait in reached}
    found = [wait for wait, (race, *_) in results.items() if race]
    missed = [wait for wait, (race, equal, *_) in results.items() if not race and not equal]
    verdict = f"{'race' if raced else '-':5} {'right' if right else 'wrong':6}"
    line = f"{name:26} {verdict} {len(reached):6} {len(found):6} {len(missed):6}"
    return line, [wait for wait in reached if wait not in found], said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--run")
    parser.add_argument("--without", default="")
    arguments = parser.parse_args()
    if arguments.install:
        install()
    elif arguments.run:
        library = LIBRARIES[arguments.run]
        finder = Finder(library, arguments.without)
        sys.meta_path.insert(0, finder)
        for module in library.modules:
            sys.modules.pop(module, None)
        print(library.program(importlib.import_module(library.modules[0])))
        print(*finder.reached, sep="\n")
    else:
        print(f"{'program':26} {'as it is':12} {'waits':>6} {'found':>6} {'missed':>6}")
        for name in arguments.names or LIBRARIES:
            line, left, said = judge(name)
            print(line, flush=True)
            print(said, *left, sep="\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
