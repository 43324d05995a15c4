# SPDX-License-Identifier: BSD-3-Clause
"""What the list of unreached branches must say."""

import branches


def test_each_branch_of_the_list_has_a_reason():
    for line, reason in branches.listed():
        assert reason
        file, *_, way = line.split(": ")
        assert (branches.ROOT / file).is_file() and way in ("never true", "never false")


def test_a_branch_that_is_new_or_gone_is_a_problem():
    known = [("a.cpp: x: never true", "It is a constant."), ("a.cpp: y: never true", "")]
    assert branches.compare(["a.cpp: x: never true"], known[:1]) == []
    assert branches.compare([], [("a.cpp: x: never true", "By chance: two threads.")]) == []
    # The same condition at a second place is another branch.
    (told,) = branches.compare(["a.cpp: x: never true"] * 2, known[:1])
    assert told.startswith("No test reaches a.cpp: x: never true;")
    assert branches.compare(["a.cpp: y: never true"], known) == [
        "No test reaches a.cpp: y: never true; write one, or list it with the reason.",
        "unreached.txt lists a.cpp: x: never true, which is not so; delete it.",
    ]


def test_a_reason_holds_for_the_branches_below_it(tmp_path, monkeypatch):
    file = tmp_path / "unreached.txt"
    file.write_text("# One.\na: never true\nb: never true\n\n# Two.\nc: never false\n")
    monkeypatch.setattr(branches, "UNREACHED", file)
    assert branches.listed() == [
        ("a: never true", "One."),
        ("b: never true", "One."),
        ("c: never false", "Two."),
    ]
