# SPDX-License-Identifier: BSD-3-Clause
"""What `./dev drift` tells of two releases of PyTorch."""

import re
import subprocess
import sys
from pathlib import Path

import drift
import private_names
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools/upgrade"

HEADER = """
struct C10_API DeviceGuardImplInterface; // virtual void ours() = 0;
class C10_API DeviceAllocator : public c10::Allocator {
 public:
  DeviceAllocator();
  ~DeviceAllocator() override;
  /* virtual void gone(); */
  virtual void emptyCache(MempoolId_t id = {0, 0}) = 0;
  virtual bool
  initialized() const {
    if (true) { virtual_call(); }
    return true;
  }
  bool twice() const override { return initialized(); }
  int overridden = 0;
#define virtual_macro virtual void no();
};
class Other { virtual void other(); };
"""


def test_the_virtual_functions_of_a_class_are_found_without_bodies_and_comments():
    assert drift.virtual_functions(HEADER, "c10::DeviceAllocator") == [
        "~DeviceAllocator() override",
        "virtual void emptyCache(MempoolId_t = {0, 0}) = 0",
        "virtual bool initialized() const",
        "bool twice() const override",
    ]


def test_a_class_that_has_gone_is_named():
    sentence = "There is no class c10::Allocator in its header, c10/core/Allocator.h."
    with pytest.raises(ValueError, match=sentence):
        drift.virtual_functions(HEADER, "c10::Allocator")


def test_every_class_of_pytorch_that_ours_derive_from_is_compared():
    bases = set()
    for file in private_names.sources(".cpp", ".h"):
        bases.update(re.findall(r": public ((?:at|c10|torch|libkineto)::[\w:]+)", file.read_text()))
    assert {base for base in bases if "autograd::Function" not in base} <= set(drift.INTERFACES)


def release(version, **found):
    kinds = {kind: dict.fromkeys(items, "") for kind, items in found.items()}
    return {"torch": version, "found": kinds}


def test_a_comparison_says_what_came_and_what_went():
    old, new = (
        release("2.13.0", guard=["f()", "g()"], dtypes=["a"]),
        release("2.15.0", guard=["g()", "h()"], dtypes=["a"]),
    )
    old["found"]["guard"]["f()"] = "guard.cpp:7"
    assert list(drift.compare(old, new)) == [
        "torch 2.13.0 -> 2.15.0",
        "\nguard: 2 -> 2",
        "  - f() guard.cpp:7",
        "  + h()",
        "\ndtypes: the same 1",
    ]


def test_what_needs_a_build_of_ours_is_not_compared_without_one():
    lines = list(drift.compare(release("2.13.0", paths=["a"]), release("2.16.0")))
    assert lines[1:] == ["\npaths: not compared, because there is no build for torch 2.16.0"]


def test_a_look_at_this_pytorch_compares_equal_with_itself_and_finds_all_our_private_names(
    tmp_path,
):
    command, file = [sys.executable, TOOLS / "drift.py"], tmp_path / "look.json"
    subprocess.run([*command, "--look", file], check=True)
    command += [file, file]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kinds = said.split("\n\n")
    assert len(kinds) > len(drift.INTERFACES) + 8
    assert [kind for kind in kinds[1:] if ": the same" not in kind] == []
    assert f"private names of PyTorch that we use: the same {len(drift.ours())}" in said
    assert "without a kernel of ours: fallback: the same" in said
