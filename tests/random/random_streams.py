# SPDX-License-Identifier: BSD-3-Clause
"""Programs on several streams and two devices, whose memory is freed and used again, compared with the CPU."""

import random

import torch
from comparing import difference

N = 1 << 14
FUNCTIONS = [
    "x + y", "x * 0.5 - y", "x.cumsum(0).remainder(7)", "torch.maximum(x, y)", "x.flip(0) + 1",
    "x.view(128, 128).t().reshape(-1)", "x.sort().values", "torch.cat([x[::2], y[1::2]])",
    "x.roll(3) - y", "x.add_(y).remainder_(11)", "x[100:9000].mul_(-1).sum() + x", "x.copy_(y)",
    "(x + 1).to('{other}').add_(1).to('{here}') + y", "(x * 2).cpu().add_(1).to('{here}')",
    "torch.zeros_like(x).add_(y)", "(x + 1)[5:].repeat(2)[: x.shape[0]]",
]  # fmt: skip
WAITS = ("event", "event", "stream", "host")


def make(seed):
    choose = random.Random(seed)
    names = []
    for count in range(choose.randint(8, 40)):
        kind = choose.random()
        stream = choose.randrange(4)
        if len(names) < 2 or kind < 0.12:
            how = choose.choice(("pinned", "pageable", "device"))
            yield f"t{count} = tensor({stream}, {count + seed % 1000}, {how!r})"
            names.append(f"t{count}")
        elif kind < 0.3:
            name = choose.choice(names)
            names.remove(name)
            yield f"del {name}"
        elif kind < 0.36:
            yield f"busy({stream})"
        elif kind < 0.42:
            yield f"r{count} = to_host({stream}, {choose.choice(names)})"
        else:
            x, y = choose.choice(names), choose.choice(names)
            keep = choose.choice(("record_stream", "record_stream", "kept"))
            yield (
                f"t{count} = on({stream}, {choose.choice(WAITS)!r}, {keep!r}, "
                f"lambda x, y: {choose.choice(FUNCTIONS)}, {x}, {y})"
            )
            names.append(f"t{count}")


class Shared:
    """A tensor, and the streams that have used its memory, each with an event after the last use."""

    def __init__(self, tensor, uses):
        self.tensor, self.uses = tensor, uses


class OnCpu:
    def tensor(self, stream, seed, how):
        return numbers(seed)

    def on(self, stream, wait, keep, function, x, y):
        return function(x, y)

    def to_host(self, stream, x):
        return x.clone()

    def busy(self, stream):
        pass

    def wrong(self, x):
        return x.clone()


class OnDevice:
    def __init__(self):
        self.streams = [
            torch.openreg.Stream(priority=-(i % 2)) if i else torch.openreg.default_stream()
            for i in range(4)
        ]
        self.kept = []
        self.heavy = torch.ones(150, 150, device="openreg")
        torch.openreg.synchronize()

    def used(self, stream, *shared):
        for each in shared:
            each.uses[stream] = self.streams[stream].record_event()

    def tensor(self, stream, seed, how):
        x = numbers(seed)
        with torch.openreg.stream(self.streams[stream]):
            if how == "device":
                x = torch.arange(N, device="openreg").add_(seed).remainder_(13).float()
            else:
                x = x.pin_memory() if how == "pinned" else x
                x = x.to("openreg", non_blocking=how == "pinned")
        made = Shared(x, {})
        self.used(stream, made)
        return made

    def wait(self, stream, how, *shared):
        for each in shared:
            for other, event in each.uses.items():
                if other == stream:
                    continue
                if how == "event":
                    self.streams[stream].wait_event(event)
                elif how == "stream":
                    self.streams[stream].wait_stream(self.streams[other])
                else:
                    event.synchronize()

    def on(self, stream, wait, keep, function, x, y):
        self.wait(stream, wait, x, y)
        with torch.openreg.stream(self.streams[stream]):
            result = function(x.tensor, y.tensor)
        for each in (x, y):
            if keep == "kept":
                self.kept.append(each.tensor)
            else:
                each.tensor.record_stream(self.streams[stream])
        same = [e for e in (x, y) if e.tensor.data_ptr() == result.data_ptr()]
        made = Shared(result, same[0].uses if same else {})
        self.used(stream, made, x, y)
        return made

    def to_host(self, stream, x):
        self.wait(stream, "event", x)
        with torch.openreg.stream(self.streams[stream]):
            copied = torch.empty(x.tensor.shape, pin_memory=True)
            copied.copy_(x.tensor, non_blocking=True)
        x.tensor.record_stream(self.streams[stream])
        self.used(stream, x)
        return copied

    def busy(self, stream):
        with torch.openreg.stream(self.streams[stream]):
            for _ in range(3):
                torch.mm(self.heavy, self.heavy)

    def wrong(self, x):
        self.streams[2].synchronize()
        with torch.openreg.stream(self.streams[2]):
            made = Shared(x.tensor + 1, {})
        self.used(2, made)
        return made


def numbers(seed):
    return (torch.arange(N) + seed).remainder(13).float()


def space_of(place):
    names = ("tensor", "on", "to_host", "busy", "wrong")
    return {"torch": torch} | {name: getattr(place, name) for name in names}


def judge(lines):
    here, there = space_of(OnCpu()), space_of(OnDevice())
    try:
        for line in lines:
            exec(line.format(here="cpu", other="cpu"), here)
    except Exception:
        return None  # Not a program.
    try:
        for line in lines:
            exec(line.format(here="openreg:0", other="openreg:1"), there)
        torch.openreg.synchronize(0)
        torch.openreg.synchronize(1)
    except Exception as error:
        return f"only the device raises {type(error).__name__}: {str(error)[:300]}"
    for name, wanted in here.items():
        if isinstance(wanted, torch.Tensor):
            found = there[name]
            found = found.tensor if isinstance(found, Shared) else found
            if told := difference(wanted, found):
                return f"{name} {told}"
    return None
