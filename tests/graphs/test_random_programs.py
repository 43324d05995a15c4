# SPDX-License-Identifier: BSD-3-Clause
"""Random programs replay as they run eagerly, bit for bit."""

import random

import pytest
import torch
from random_programs import DEVICE, SIZE, Program
from torch_openreg import _C


@pytest.mark.parametrize("block", range(5))
def test_replays_give_what_eager_calls_give_and_leave_what_they_leave(block):
    for seed in range(block * 20, block * 20 + 20):
        compare(seed)


def compare(seed):
    choose = random.Random(seed)
    programs = [Program(2 * seed)]
    if choose.random() < 0.5:
        programs.append(Program(2 * seed + 1, programs[0].states))
    generators = [_C.default_generator(0), torch.Generator(DEVICE), torch.Generator(DEVICE)]
    torch.manual_seed(seed)
    start = [torch.rand(SIZE, SIZE).to(DEVICE) for _ in range(3)]
    inputs = [each.clone() for each in start]
    share_a_pool, calls = choose.random() < 0.5, choose.randint(1, 3)

    def begin():
        for one, other, generator in zip(inputs, start, generators, strict=True):
            one.copy_(other)
            generator.manual_seed(100)

    def noted(results):
        numbers = [each.cpu() for each in results + inputs]
        return numbers + [each.get_state() for each in generators]

    graphs, states, pool = [], {}, None
    for program in programs:
        graph = torch.accelerator.Graph()
        with torch.openreg.graph(graph, pool=pool):
            results = program.run(inputs, generators, states)
        graphs.append((graph, results))
        pool = graph.pool() if share_a_pool else None

    begin()
    found = []
    for _ in range(calls):
        for graph, results in graphs:
            graph.replay()
            found.append(noted(results))
    begin()
    for call in range(calls):
        states = {}
        for i, program in enumerate(programs):
            expected = noted(program.run(inputs, generators, states))
            for one, other in zip(found[call * len(programs) + i], expected, strict=True):
                assert torch.equal(one, other), f"program {i} of seed {seed}, call {call}"
