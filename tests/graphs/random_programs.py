# SPDX-License-Identifier: BSD-3-Clause
"""Random programs that draw, seed, keep and set states, and change tensors through views."""

import random

import torch

DEVICE = torch.device("openreg:0")
SIZE = 6

PURE = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: (x * y).clamp(-3, 3),
    "mm": lambda x, y: (x @ y) / 9,
    "cat": lambda x, y: torch.cat([x[:3], y[3:]]),
    "softmax": lambda x, y: x.softmax(-1),
    "sort": lambda x, y: x.sort(-1).values,
    "where": lambda x, y: torch.where(x > y, x, y),
}
VIEWS = {
    "whole": lambda x, i: x,
    "row": lambda x, i: x[i],
    "column": lambda x, i: x[:, i],
    "transposed": lambda x, i: x.t(),
    "diagonal": lambda x, i: x.diagonal(),
    "every second": lambda x, i: x[::2],
    "block": lambda x, i: x[1:4, 2:5],
}
CHANGES = {
    "add_": lambda x, y: x.add_(y, alpha=0.3),
    "mul_": lambda x, y: x.mul_(0.75),
    "copy_": lambda x, y: x.copy_(y),
    "clamp_": lambda x, y: x.clamp_(-1, 1),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0.5, -0.5),
}


def empty():
    return torch.empty(SIZE, SIZE, device=DEVICE)


DRAWS = {
    "uniform_": lambda x, g: empty().uniform_(-1, 1, generator=g),
    "normal_": lambda x, g: empty().normal_(generator=g),
    "bernoulli_": lambda x, g: empty().bernoulli_(0.5, generator=g),
    "exponential_": lambda x, g: empty().exponential_(generator=g),
    "randperm": lambda x, g: torch.randperm(36, device=DEVICE, generator=g).view(6, 6) / 36,
    "dropout": lambda x, g: torch.nn.functional.dropout(x, 0.4),
    "clone": lambda x, g: empty().uniform_(generator=g.clone_state()),
}


class Program:
    """Steps that a seed decides; a run decides nothing more."""

    def __init__(self, seed, states=0):
        self.choose = random.Random(seed)
        self.states, self.tensors = states, [0, 1, 2]
        self.steps = [self.step() for _ in range(self.choose.randint(5, 40))]

    def step(self):
        pick = self.choose.choice
        first, second = pick(self.tensors), pick(self.tensors)
        generator, number = self.choose.randrange(3), self.choose.randrange(SIZE)
        kind = pick(["pure", "change", "change", "draw", "draw", "keep", "set", "seed", "drop"])
        if kind == "set" and self.states:
            return kind, generator, self.choose.randrange(self.states)
        if kind == "keep":
            self.states += 1
            return kind, generator, self.states - 1
        if kind == "seed":
            return kind, generator, number
        if kind == "drop" and first > 2:
            self.tensors.remove(first)
            return kind, first
        if kind == "change":
            return kind, pick(list(VIEWS)), pick(list(CHANGES)), first, second, number
        self.tensors.append(max(self.tensors) + 1)
        if kind == "pure":
            return kind, pick(list(PURE)), first, second, self.tensors[-1]
        return "draw", pick(list(DRAWS)), first, generator, self.tensors[-1]

    def run(self, inputs, generators, states):
        """What is left at the end; `states` are those that were kept, here or before."""
        tensors = dict(enumerate(inputs))
        for kind, *step in self.steps:
            if kind == "pure":
                tensors[step[3]] = PURE[step[0]](tensors[step[1]], tensors[step[2]])
            elif kind == "change":
                view, change, first, second, number = step
                other = VIEWS[view](tensors[second], number).clone()
                CHANGES[change](VIEWS[view](tensors[first], number), other)
            elif kind == "draw":
                tensors[step[3]] = DRAWS[step[0]](tensors[step[1]], generators[step[2]])
            elif kind == "keep":
                states[step[1]] = generators[step[0]].get_state()
            elif kind == "set":
                generators[step[0]].set_state(states[step[1]])
            elif kind == "seed":
                generators[step[0]].manual_seed(step[1])
            else:
                del tensors[step[0]]
        return [tensors[each] for each in self.tensors if each > 2]
