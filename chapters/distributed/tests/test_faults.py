# SPDX-License-Identifier: BSD-3-Clause
"""Whatever breaks, each rank ends in time with a sentence, and its device works afterwards."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from on_ranks import Ranks

PROGRAM = Path(__file__).with_name("faults.py")
TIMEOUT = 2  # of the groups in that program
SHARED = (
    "slow",
    "another_collective",
    "another_size",
    "another_dtype",
    "another_order_of_groups",
    "no_memory",
)


def answers(out):
    """What a rank said of each fault."""
    lines = (json.loads(line) for line in out.splitlines() if line.startswith('{"fault"'))
    return {answer["fault"]: answer for answer in lines}


def nothing_runs(ranks):
    """Whether all processes, and those that they have started, have ended."""
    for process in ranks.processes:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            continue
        return False
    return True


def is_fair(error):
    """A rank that comes late gets an error, or the sum, if the other had already given its part."""
    return re.match(r"$|DistBackendError: |RuntimeError: Rank 0 has left the group", error)


def run(tmp_path, *faults):
    with Ranks(PROGRAM, 2, tmp_path, *faults, folder=tmp_path) as ranks:
        ends = ranks.ends(30)
        assert nothing_runs(ranks)
    return ends


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The faults that both processes survive, one after the other."""
    ends = run(tmp_path_factory.mktemp("faults"), *SHARED)
    assert [end.code for end in ends] == [0, 0], ends
    return [answers(end.out) for end in ends]


@pytest.mark.parametrize("fault", SHARED)
def test_the_device_works_afterwards_and_nothing_takes_longer_than_the_timeout(fault, shared):
    for rank in shared:
        assert rank[fault]["works"]
        limit = 2 * TIMEOUT if fault == "slow" else TIMEOUT
        assert rank[fault]["seconds"] < limit + 1.5


def test_a_slow_rank_is_waited_for_until_the_timeout(shared):
    error = shared[0]["slow"]["error"]
    assert re.match(
        r"DistBackendError: orccl: all_reduce.* was not done within 2000 ms, maybe", error
    ), error
    assert is_fair(shared[1]["slow"]["error"])


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (
            "another_collective",
            "rank 0 calls all_reduce of 16 bytes of float32 with sum, rank 1 calls broadcast of 16"
            " bytes of float32 from rank 0",
        ),
        ("another_size", "rank 0 calls all_reduce of 16 bytes .*, rank 1 calls all_reduce of 32"),
        ("another_dtype", "of float32 with sum, rank 1 calls all_reduce of 16 bytes of int32"),
    ],
)
def test_ranks_that_call_different_things_are_told_both_calls(fault, calls, shared):
    for rank in shared:
        assert re.search(f"^DistBackendError: .*{calls}", rank[fault]["error"])


def test_two_groups_may_be_used_in_different_orders(shared):
    assert [rank["another_order_of_groups"]["error"] for rank in shared] == ["", ""]


def test_a_device_without_room_for_a_mailbox_is_out_of_memory(shared):
    assert shared[1]["no_memory"]["error"].startswith("OutOfMemoryError: ")
    assert shared[0]["no_memory"]["error"] != ""


def test_a_killed_peer_is_named_within_two_seconds(tmp_path):
    with Ranks(PROGRAM, 2, tmp_path, "killed", folder=tmp_path) as ranks:
        first, second = ranks.ends(30)
        killed = ranks.processes[1].pid
        assert nothing_runs(ranks)
    assert (first.code, second.code) == (0, -signal.SIGKILL)
    answer = answers(first.out)["killed"]
    named = (
        rf"DistBackendError: orccl: rank 1 \(process {killed}\) has ended without leaving the group"
    )
    assert re.match(named, answer["error"]), answer
    assert "all_reduce" in answer["error"]
    assert answer["seconds"] < 2.5  # 0.3 of them before it was killed
    assert answer["works"]


def test_a_stopped_peer_is_waited_for_until_the_timeout(tmp_path):
    with Ranks(PROGRAM, 2, tmp_path, "stopped", folder=tmp_path) as ranks:
        assert ranks.said(0, '"fault"')
        assert ranks.processes[0].wait(10) == 0
        assert ranks.processes[1].poll() is None
        answer = answers(ranks.out(0))["stopped"]
        # It goes on, finds the group without its peer, and ends as well.
        ranks.processes[1].send_signal(signal.SIGCONT)
        ends = ranks.ends(15)
        assert nothing_runs(ranks)
    assert re.match(
        r"DistBackendError: orccl: all_reduce.* was not done within 2000 ms", answer["error"]
    )
    assert answer["works"]
    assert ends[1].code == 0
    assert is_fair(answers(ends[1].out)["stopped"]["error"])


def test_a_process_may_end_while_a_collective_is_under_way(tmp_path):
    with Ranks(PROGRAM, 2, tmp_path, "pending", folder=tmp_path) as ranks:
        assert ranks.said(0, "leaves")
        assert ranks.processes[0].wait(5) == 0
        first, second = ranks.ends(15)
        assert nothing_runs(ranks)
    assert (first.code, second.code) == (0, 0)
    answer = answers(second.out)["pending"]
    assert is_fair(answer["error"])
    assert answer["works"]
