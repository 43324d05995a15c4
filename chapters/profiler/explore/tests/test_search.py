# SPDX-License-Identifier: BSD-3-Clause
"""The search visits each class of orders exactly once: it is compared with all orders of small random programs."""

import dataclasses
import random

import pytest
from torch_openreg.explore_child import Run, Step
from torch_openreg.explore_search import Relation, Search


@dataclasses.dataclass
class Command:
    stream: int  # 0 is the host
    number: int  # in its stream
    place: int  # in the program
    reads: frozenset
    writes: frozenset
    before: dict  # stream -> how many of its steps come before
    asks: dict  # the same, for the answer yes

    def conflicts(self, other):
        if self.stream == other.stream or other.before.get(self.stream, 0) >= self.number:
            return False
        for one, two in ((self, other), (other, self)):
            if one.asks.get(two.stream, 0) == two.number:
                return True
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


class Device:
    """The driver's scheduler, without a device: `program` is a list of what the host does.

    (stream, reads, writes)   enqueues a command; on stream 0, the host touches memory itself
    ("wait", a, b)            stream a waits for what is enqueued on stream b
    ("sync", a)               the host waits for stream a; ("poll", a) asks whether it is done
    """

    def __init__(self, program, choose):
        self.program, self.choose = program, choose
        self.clocks = {stream: {} for stream in range(8)}
        self.queues, self.done, self.steps, self.ran = {}, {}, [], []
        self.answers = []

    def run(self):
        for place, action in enumerate(self.program):
            if action[0] == "wait":
                self.join(self.clocks[action[1]], self.clocks[action[2]])
            elif action[0] == "sync":
                while self.queues.get(action[1]):
                    self.step()
                self.join(self.clocks[0], self.clocks[action[1]])
            elif action[0] == "poll":
                asks = dict(self.clocks[action[1]])
                if self.is_known(asks, self.clocks[0]):
                    continue
                self.enqueue(place, 0, (), (), asks)
                self.answers.append(self.is_known(asks, self.done))
                if self.answers[-1]:
                    self.join(self.clocks[0], asks)
            else:
                self.enqueue(place, *action)
        while any(self.queues.values()):
            self.step()

    def join(self, clock, other):
        for stream, count in other.items():
            clock[stream] = max(count, clock.get(stream, 0))

    def is_known(self, asks, clock):
        return all(clock.get(stream, 0) >= count for stream, count in asks.items())

    def enqueue(self, place, stream, reads, writes, asks=()):
        clock = self.clocks[stream]
        self.join(clock, self.clocks[0])
        before = dict(clock)
        clock[stream] = number = clock.get(stream, 0) + 1
        touches = frozenset(reads), frozenset(writes)
        command = Command(stream, number, place, *touches, before, dict(asks))
        self.queues.setdefault(stream, []).append(command)
        if stream == 0:
            while self.queues[0]:
                self.step()

    def step(self):
        heads = {stream: queue[0] for stream, queue in sorted(self.queues.items()) if queue}
        ready = {
            stream: head
            for stream, head in heads.items()
            if all(self.done.get(s, 0) >= count for s, count in head.before.items() if s != stream)
        }
        names = {stream: "host" if stream == 0 else chr(64 + stream) for stream in ready}
        chosen = self.choose({names[stream]: head.place for stream, head in ready.items()})
        [stream] = [stream for stream, name in names.items() if name == chosen]
        command = self.queues[stream].pop(0)
        self.done[stream] = command.number
        conflicts = [i for i, each in enumerate(self.ran) if each.conflicts(command)]
        before = tuple(command.before.get(s, 0) for s in range(8))
        self.steps.append(
            Step(chosen, "", 0, 0, "", tuple(names.values()), before, tuple(conflicts))
        )
        self.ran.append(command)


def run(program, order, last):
    order = list(order)

    def choose(ready):
        if len(ready) == 1:
            return next(iter(ready))
        if order:
            return order.pop(0)
        return min(ready, key=lambda stream: (stream in last, ready[stream]))

    device = Device(program, choose)
    device.run()
    return Run("", tuple(order), 0, str(device.answers), "", tuple(device.steps))


def class_of(run):
    """The order of all pairs that conflict, and the answers to the host's questions."""
    numbers = Relation(run.steps).numbers
    names = [(step.stream, number) for step, number in zip(run.steps, numbers)]
    pairs = ((names[j], names[i]) for i, step in enumerate(run.steps) for j in step.conflicts)
    return frozenset([*pairs, run.out])


def all_classes(program, most=4000):
    """By trying each choice at each step."""
    found, open_orders = set(), [()]
    for _ in range(most):
        if not open_orders:
            return found
        prefix = open_orders.pop()
        made = run(program, prefix, ())
        found.add(class_of(made))
        choices = [step for step in made.steps if len(step.ready) > 1]
        taken = tuple(step.stream for step in choices)
        for depth in range(len(prefix), len(choices)):
            for other in choices[depth].ready:
                if other != taken[depth]:
                    open_orders.append((*taken[:depth], other))
    return None


def random_program(seed, with_polls):
    chosen = random.Random(seed)
    program = []
    for _ in range(chosen.randint(3, 7)):
        kind = chosen.random()
        one, other = chosen.sample(range(1, 4), 2)
        if kind < 0.15:
            program.append(("wait", one, other))
        elif kind < 0.25:
            program.append(("sync", one))
        elif kind < 0.32 and with_polls:
            program.append(("poll", one))
        else:
            stream = one if chosen.random() < 0.85 else 0
            sets = [{"x", "y", "z"}] * 2
            reads, writes = (chosen.sample(sorted(each), chosen.randint(0, 1)) for each in sets)
            program.append((stream, reads, writes))
    return program


@pytest.mark.parametrize("with_polls", [False, True])
def test_the_search_finds_every_class_of_random_programs_once(with_polls):
    compared, classes, most, runs = 0, 0, 0, []
    for seed in range(400):
        program = random_program(seed, with_polls)
        wanted = all_classes(program)
        if wanted is None:
            continue

        def run_once(order, last, program=program):
            runs.append(order)
            return run(program, order, last)

        found = [class_of(each) for each in Search(run_once).orders()]
        assert set(found) == wanted, program
        assert len(found) == len(set(found)), program
        compared += 1
        classes += len(found)
        most = max(most, len(found))
    assert compared > 300 and most >= 12
    # Few runs are astray: they repeat what has been seen, or must choose anew.
    assert len(runs) < 1.04 * classes
