# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are captured into graphs and replayed with new inputs, compared with eager calls bit for bit."""

import random

import torch
from comparing import difference
from torch_openreg import _C

SIZE = 6
PURE = [
    "{x} + {y}", "({x} * {y}).clamp(-3, 3)", "({x} @ {y}) / 9", "torch.cat([{x}[:3], {y}[3:]])",
    "{x}.softmax(-1)", "{x}.sort(-1).values", "torch.where({x} > {y}, {x}, {y})",
    "{x}.cumsum(0) / 6", "torch.nn.functional.layer_norm({x}, (6,))",
    "{x}.index_select(0, {y}.argsort(0)[0])", "{x}.median(0).values * {y}", "{x}.t().contiguous()",
    "{x}.to(torch.float16).float()", "torch.zeros_like({x}).index_add(0, {y}.argsort(0)[0], {x})",
    "{x}.sum(0) + {y}", "{x}.unfold(0, 6, 1)[0].t() + 0", "torch.tril({x}) + {y}.triu()",
    "{x}.expand(3, 6, 6).amax(0)",
]  # fmt: skip
DRAWS = [
    "torch.empty_like({x}).uniform_(-1, 1)",
    "torch.empty_like({x}).normal_(generator={g})",
    "torch.empty_like({x}).bernoulli_(0.5)",
    "torch.empty_like({x}).exponential_(generator={g})",
    "torch.empty_like({x}).uniform_(generator={g}.clone_state())",
    "torch.nn.functional.dropout({x}, 0.4)",
    "torch.randperm(36, device={x}.device).view(6, 6) / 36",
    "torch.rand(6, 6, device={x}.device, generator={g})",
    "torch.randn_like({x}).clamp(-2, 2)",
    "torch.multinomial({x}.softmax(-1), 6, replacement=True) / 6",
    "torch.nn.functional.gumbel_softmax({x})",
]
# Of a view, by another tensor through the same view.
VIEWS = ["", "[{i}]", "[:, {i}]", ".t()", ".diagonal()", "[::2]", "[1:4, 2:5]"]
CHANGES_OF_VIEWS = [
    "{x}.add_({y}, alpha=0.25)",
    "{x}.mul_(0.75)",
    "{x}.copy_({y})",
    "{x}.fill_(0.5)",
    "{x}.clamp_(-1, 1)",
    "{x}.masked_fill_({y} > 0.5, -0.5)",
]
CHANGES = [
    "{x}[1:].copy_({y}[:-1].clone())",
    "{x}[{y}.argsort(0)[0, :2]] = 0.125",
    "{x}.tril_()",
    "{x}.uniform_()",
]
GENERATORS = ["default", "g", "h"]


def make(seed):
    """Lines of one to three graphs; a graph begins with a comment that says where its memory comes from."""
    choose = random.Random(seed)
    names, count, states = ["x0", "x1", "x2"], 0, 0
    for graph in range(choose.randint(1, 3)):
        pool = choose.choice(("own", "shared")) if graph else "own"
        yield f"# graph, {pool} memory"
        for _ in range(choose.randint(2, 18)):
            x, y, g = choose.choice(names), choose.choice(names), choose.choice(GENERATORS)
            kind, i = choose.random(), choose.randrange(SIZE)
            if kind < 0.08:
                yield choose.choice(CHANGES).format(x=x, y=y)
            elif kind < 0.25:
                view = choose.choice(VIEWS).format(i=i)
                change = choose.choice(CHANGES_OF_VIEWS)
                yield change.format(x=x + view, y=f"{y}{view}.clone()")
            elif kind < 0.31:
                states += 1
                yield f"s{states} = {g}.get_state()"
            elif kind < 0.37 and states:
                yield f"{g}.set_state(s{choose.randint(1, states)})"
            elif kind < 0.40:
                yield f"{g}.manual_seed({i})"
            elif kind < 0.46 and len(names) > 4:
                name = choose.choice(names[3:])
                names.remove(name)
                yield f"del {name}"
            else:
                count += 1
                template = choose.choice(DRAWS if kind > 0.8 else PURE)
                line = f"t{count} = {template.format(x=x, y=y, g=g)}"
                if choose.random() < 0.2:
                    line = f"with side(): {line}"
                yield line
                names.append(f"t{count}")


def parts(lines):
    """The lines of each graph, and whether it shares memory."""
    found = []
    for line in lines:
        if line[0] == "#":
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return [part for part in found if part[1]]


class Side:
    """Work on another stream, which waits for the first and is waited for."""

    def __init__(self, stream):
        self.stream, self.within = stream, torch.openreg.stream(stream)

    def __enter__(self):
        self.before = torch.openreg.current_stream()
        self.stream.wait_stream(self.before)
        self.within.__enter__()

    def __exit__(self, *error):
        self.within.__exit__(*error)
        self.before.wait_stream(self.stream)


class Place:
    def __init__(self):
        self.generators = [_C.default_generator(0)] + [torch.Generator("openreg") for _ in "gh"]
        self.inputs = [torch.empty(SIZE, SIZE, device="openreg") for _ in range(3)]
        stream = torch.openreg.Stream()
        self.space = {"torch": torch, "wrong": wrong}
        self.space |= dict(zip(GENERATORS, self.generators, strict=True))
        self.space["side"] = lambda: Side(stream)
        self.space |= {f"x{i}": x for i, x in enumerate(self.inputs)}

    def begin(self, call):
        for generator in self.generators:
            generator.manual_seed(call)
        for i, x in enumerate(self.inputs):
            numbers = torch.Generator().manual_seed(10 * call + i)
            x.copy_(torch.rand(SIZE, SIZE, generator=numbers) - 0.5)

    def tensors(self):
        named = {n: t for n, t in self.space.items() if isinstance(t, torch.Tensor)}
        return {n: t.cpu() for n, t in named.items()} | self.states()

    def states(self):
        return {n: self.space[n].get_state() for n in GENERATORS}


calls = [0]


def wrong(x):
    """Adds what is right only in the run that is captured."""
    calls[0] += 1
    return x + calls[0]


def run(lines, space):
    for line in lines:
        exec(line, space)


def judge(lines):
    eager, captured = Place(), Place()
    graphs, pool = [], None
    eager.begin(0)
    try:
        for _, part in parts(lines):
            run(part, eager.space)
    except Exception:
        return None  # Not a program.
    captured.begin(0)
    made = []
    for head, part in parts(lines):
        graph = torch.accelerator.Graph()
        try:
            with torch.openreg.graph(graph, pool=pool if "shared" in head else None):
                run(part, captured.space)
        except Exception as error:
            return f"the capture raises {type(error).__name__}: {str(error)[:300]}"
        pool = graph.pool()
        named = {
            n: t for n, t in captured.space.items() if n[0] in "tx" and isinstance(t, torch.Tensor)
        }
        made.append(named)
        graphs.append(graph)
    for call in (1, 2):
        # The first time all graphs run once, and the second time twice, one after the other.
        eager.begin(call)
        after = []
        for _, part in call * parts(lines):
            run(part, eager.space)
            after.append(eager.tensors())
        captured.begin(call)
        for number, graph in enumerate(call * graphs):
            graph.replay()
            junk = [torch.full((2000 * call,), float("nan"), device="openreg") for _ in range(3)]
            torch.openreg.synchronize()
            del junk
            for name, tensor in (made[number % len(graphs)] | captured.states()).items():
                if name not in after[number]:
                    continue
                if told := difference(after[number][name], tensor.cpu(), factor=0):
                    told = told.replace("on the CPU", "eagerly").replace(
                        "on the device", "replayed"
                    )
                    return f"replay {number}, call {call}: {name} {told}"
    return None
