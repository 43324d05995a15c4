# SPDX-License-Identifier: BSD-3-Clause
"""A call of the store fails, each in turn: both ranks are told, and a new group computes."""

from pathlib import Path

from on_ranks import Ranks

PROGRAM = Path(__file__).with_name("every_store_call.py")
LIMIT = 1  # of the groups there, in seconds
TOLD = (
    "DistBackendError: A rank of the group did not join within the timeout",
    "DistBackendError: Rank 1 has left the group before rank 0 has connected to it.",
    "RuntimeError: openreg:0 could not run wait: ",  # a collective has no result
    "DistStoreError: ",  # PyTorch itself waits for the other rank
    "right",  # this rank did not need the other one any more
)


def test_each_call_of_the_store_may_fail(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    with Ranks(PROGRAM, 2, store, folder=tmp_path) as ranks:
        ends = ranks.ends(300, patience=30)
    assert [end.code for end in ends] == [0, 0], "\n".join(end.err[-2000:] for end in ends)
    first, second = ([line.split("\t") for line in end.out.splitlines()] for end in ends)
    assert len(first) == len(second)
    for (at, taken, told, _), (_, _, its, failed) in zip(first, second, strict=True):
        assert told.startswith(TOLD), (at, told)
        assert float(taken) < LIMIT + 5, (at, taken, told)
        if its == "right":  # The ranks had not met yet, and the next call tried again.
            assert told == "right", (at, failed)
        else:
            assert its == f"Broken: {failed} failed, by order", at
    assert sum(its != "right" for _, _, its, _ in second) >= 20
    assert second[-1][2:] == ["right", ""], "the program that needs no more calls"
