# SPDX-License-Identifier: BSD-3-Clause
"""Visits one order of each class of equivalent ones: partial-order reduction with source sets and sleep sets."""

import dataclasses


# [profiler.explore.relation] In a run, one step comes before another if a chain of edges, or of conflicts in the order of the run, leads to it.
class Relation:
    """Which steps of a run come before which, by their numbers in the run."""

    def __init__(self, steps):
        self.steps = steps
        self.numbers = []  # of each step, its place in its stream, from 1
        self._clocks = []  # of each step, how many steps of each stream come before it, or are it
        self._direct = []  # of each step, others that come before it, of which follow all others
        places, latest = {}, {}
        for i, step in enumerate(steps):
            direct = set(step.conflicts) | {latest.get(step.stream)}
            direct |= {places.get(place) for place in enumerate(step.before)}
            self._direct.append(direct - {None})
            clock = {}
            for j in self._direct[i]:
                for stream, count in self._clocks[j].items():
                    clock[stream] = max(count, clock.get(stream, 0))
            clock[step.stream] = clock.get(step.stream, 0) + 1
            self._clocks.append(clock)
            self.numbers.append(clock[step.stream])
            places[step.number, clock[step.stream]] = latest[step.stream] = i

    def is_before(self, j, i):
        return self._clocks[i].get(self.steps[j].stream, 0) >= self.numbers[j]

    # [profiler.explore.races] Two steps could change places if nothing keeps them in order but their own conflict.
    def _is_forced(self, j, i):
        one, other = self.steps[j], self.steps[i]
        known = other.before[one.number] if one.number < len(other.before) else 0
        return one.stream == other.stream or known >= self.numbers[j]

    def reversible(self, i):
        """The earlier steps that could come after step `i` if they had not come first."""
        return [
            j
            for j in self._direct[i]
            if not self._is_forced(j, i)
            and not any(self.is_before(j, k) for k in self._direct[i] if k != j)
        ]

    def initials(self, j, i):
        """The streams that can begin an order in which step `i` comes without step `j`."""
        between = [k for k in range(j + 1, i) if not self.is_before(j, k)] + [i]
        return [
            self.steps[k].stream
            for place, k in enumerate(between)
            if not any(self.is_before(before, k) for before in between[:place])
        ]

    # [profiler.explore.wakes] A stream sleeps until a step runs with which its next step conflicts.
    def wakes(self, i, stream):
        """Whether it matters that step `i` runs before the next step of `stream`."""
        later = range(i + 1, len(self.steps))
        following = next((j for j in later if self.steps[j].stream == stream), None)
        return following is None or i in self.steps[following].conflicts


# [profiler.explore.node] A node of the search is a moment at which a step is chosen.
@dataclasses.dataclass
class Node:
    ready: tuple
    chosen: str
    sleep: frozenset  # streams whose next step was the first one elsewhere, with the same effect
    done: set = dataclasses.field(default_factory=set)  # chosen earlier
    todo: list = dataclasses.field(default_factory=list)  # to be chosen

    def covers(self, stream):
        return stream == self.chosen or stream in {*self.sleep, *self.done, *self.todo}

    def next(self):
        over = {self.chosen, *self.done, *self.sleep}
        return next((each for each in self.todo if each not in over), None)

    def asleep_after(self, relation, depth):
        asleep = (self.sleep | self.done) - {self.chosen}
        return frozenset(each for each in asleep if not relation.wakes(depth, each))


# [profiler.explore.repeat] Nothing can be said of a program that does something else each time.
class NotRepeatable(Exception):
    """The same order gave other steps, or another result."""


# [profiler.explore.search] The deepest open choice is taken first, so that the nodes are those of one run.
class Search:
    """Visits the orders of a program. `run(order, last)` runs it: the streams `last` only if they must."""

    def __init__(self, run):
        self._run = run
        self._nodes = []

    def orders(self):
        """One run of each class, the one in the order of the program first."""
        begin = 0
        while begin is not None:
            result, is_new = self._visit(begin)
            if is_new:
                yield result
            begin = self._next_branch()

    def _next_branch(self):
        """Truncates the nodes to the deepest that has an open choice, and takes it; returns its depth."""
        while self._nodes:
            node = self._nodes[-1]
            chosen = node.next()
            if chosen is not None:
                node.done.add(node.chosen)
                node.chosen = chosen
                return len(self._nodes) - 1
            self._nodes.pop()
        return None

    # [profiler.explore.visit] If the driver runs a step that sleeps, the program is run again with another choice there.
    def _visit(self, begin):
        """Runs the program by the nodes and on; returns the run, and whether it is a new one."""
        while True:
            result = self._run(self._order(), self._asleep())
            relation = Relation(result.steps)
            self._check(result.steps)
            retry = False
            for depth in range(len(self._nodes), len(result.steps)):
                step = result.steps[depth]
                sleep = self._nodes[-1].asleep_after(relation, depth - 1) if depth else frozenset()
                awake = [stream for stream in step.ready if stream not in sleep]
                if not awake:
                    self._add_choices(relation, begin, depth)
                    return result, False
                retry = step.stream not in awake
                self._nodes.append(Node(step.ready, awake[0] if retry else step.stream, sleep))
                if retry:
                    break
            if not retry:
                self._add_choices(relation, begin, len(result.steps))
                return result, True

    def _order(self):
        return [node.chosen for node in self._nodes if len(node.ready) > 1]

    def _asleep(self):
        return sorted(self._nodes[-1].sleep | self._nodes[-1].done) if self._nodes else []

    def _check(self, steps):
        for node, step in zip(self._nodes, steps):
            if (node.ready, node.chosen) != (step.ready, step.stream):
                raise NotRepeatable

    # [profiler.explore.choices] A choice is added where the order of two steps can be reversed, unless one that leads there is known.
    def _add_choices(self, relation, begin, end):
        for i in range(begin, end):
            for j in relation.reversible(i):
                node, initials = self._nodes[j], relation.initials(j, i)
                if any(map(node.covers, initials)):
                    continue
                able = [stream for stream in initials if stream in node.ready]
                # The host may have waited for a reason that is no edge; then all are tried.
                node.todo += able[:1] or [each for each in node.ready if not node.covers(each)]


# [-]
