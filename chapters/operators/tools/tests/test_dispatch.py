# SPDX-License-Identifier: BSD-3-Clause
import subprocess
import sys

import pytest
import torch
from torch_openreg import _C, dispatch

library = torch.library.Library("dispatch_test", "DEF")
library.define("nowhere(Tensor x) -> Tensor")
library.define("through(Tensor x) -> Tensor")
library.impl("through", torch.library.fallthrough_kernel, "AutogradPrivateUse1")
library.define("ours(Tensor x) -> Tensor")
library.impl("ours", lambda x: x + 1, "CompositeImplicitAutograd")
library.impl("ours", lambda x: x + 1, "PrivateUse1")


def ask(*arguments):
    command = [sys.executable, "-m", "torch_openreg.dispatch", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name,path,where", [
    ("aten::empty.memory_format", "native", "chapters/operators/minimal/minimal.cpp:"),
    ("openreg::custom_abs", "native", "chapters/operators/custom/custom_abs.cpp:"),
    ("aten::mm", "library", "chapters/operators/library/binding.cpp:"),
    ("aten::mm.out", "library", "chapters/operators/library/binding.cpp:"),
    ("aten::clone", "composite", "RegisterCompositeExplicitAutograd"),
    ("aten::linear", "parts", "RegisterCompositeImplicitAutograd"),
    ("aten::nonzero", "library", "chapters/operators/library/binding.cpp:"),
    ("aten::fake_quantize_per_tensor_affine_cachemask", "fallback",
     "chapters/operators/fallback/fallback.cpp:"),
    ("aten::from_file", "refused", "chapters/operators/fallback/fallback.cpp:"),
    ("dispatch_test::nowhere", "missing", "chapters/operators/fallback/fallback.cpp:"),
    ("dispatch_test::ours", "native", "test_dispatch.py:"),
])  # fmt: skip
def test_the_tables_say_which_path_an_operator_takes(name, path, where):
    told, why, found_at = dispatch.path_of(name)
    assert told == path and where in found_at
    assert why == dispatch.WHY.get(path, why)


@pytest.mark.parametrize("name,sentence", [
    ("aten::mm", "autograd has a kernel for it, torch/csrc/autograd/generated/VariableType"),
    ("aten::linear", "the formulas of its parts"),
    ("dispatch_test::through", "none of its own: what its kernel calls is recorded"),
    ("dispatch_test::nowhere", "no formula: a gradient ends here, with a warning"),
])  # fmt: skip
def test_they_say_where_its_gradient_comes_from(name, sentence):
    assert dispatch.autograd_of(name).startswith(sentence)


def test_every_operator_there_is_has_a_path():
    for name in torch._C._dispatch_get_all_op_names():
        assert dispatch.path_of(name)[0] in {*dispatch.WHY, "refused"}


@pytest.mark.parametrize(
    "text", ["add.Tensor", "aten::add.Tensor", "aten.add.Tensor", "torch.ops.aten.add.Tensor"]
)
def test_a_name_may_be_written_as_people_write_it(text):
    assert dispatch.resolve(text) == ["aten::add.Tensor"]


def test_a_name_without_an_overload_means_all_of_them():
    assert {"aten::add.Tensor", "aten::add.out"} < set(dispatch.resolve("add"))
    assert dispatch.resolve("torch.ops.openreg.custom_abs.default") == ["openreg::custom_abs"]
    for text in ("relu.default", "torch.relu", "torch.Tensor.relu", "torch.nn.functional.relu"):
        assert dispatch.resolve(text)[0] == "aten::relu"


def test_an_unknown_name_gets_near_ones():
    code, out, err = ask("ad.Tensr")
    assert (code, out) == (1, "")
    assert err.startswith("There is no operator ad.Tensr; near it are aten::add")
    with pytest.raises(SystemExit, match="There is no operator MUL; near it are aten::mul"):
        dispatch.resolve("MUL")
    with pytest.raises(SystemExit, match="There is no operator qqqqqqqqqqqq; near it are none."):
        dispatch.resolve("qqqqqqqqqqqq")


def test_an_override_of_what_pytorch_takes_apart_is_told_with_its_gradient(capsys):
    dispatch.list_overridden(["aten::mm", "aten::linear", "dispatch_test::ours"])
    out = capsys.readouterr().out
    assert out.startswith("dispatch_test::ours by ") and "aten::" not in out
    assert "; gradient: no formula: a gradient ends here, with a warning" in out


def test_what_the_list_says_of_an_override_is_what_happens():
    x = torch.ones(2, device="openreg", requires_grad=True)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        torch.ops.dispatch_test.ours(x).sum().backward()


def test_the_refused_are_listed_with_their_reasons(capsys):
    dispatch.list_refused(["aten::mm", "aten::nonzero", "aten::from_file"])
    out = capsys.readouterr().out
    assert out.startswith("aten::from_file: it makes a tensor of nothing") and out.count("\n") == 1


def test_all_operators_of_pytorch_are_counted(capsys):
    dispatch.count_all(torch._C._dispatch_get_all_op_names())
    counts = {path: int(n) for n, path in map(str.split, capsys.readouterr().out.splitlines())}
    assert set(counts) == {*dispatch.WHY, "refused"}
    assert sum(counts.values()) > 3000 and counts["library"] > 600 and counts["refused"] < 20


def test_a_trace_counts_what_a_program_calls_forward_and_backward(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\n"
        "x = torch.ones(3, 3, device='openreg', requires_grad=True)\n"
        "for _ in range(2): torch.nn.functional.linear(x, x).sum().backward()\n"
        "torch.ones(3) + 1\n"
        "print(sys.argv[1:])\n"
        "torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9)\n"
        "sys.exit(3)\n"
    )
    code, out, err = ask("--trace", script, "--fast", "2")
    assert code == 3, err
    first, head, *lines = out.splitlines()
    assert (first, head.split()) == ("['--fast', '2']", ["calls", "inner", "path", "operator"])
    table = {line.split()[3]: line.split()[:3] for line in lines}
    assert table["aten::linear"] == ["2", "0", "parts"]
    assert table["aten::mm"] == ["4", "2", "library"]  # Two for each backward pass.
    assert table["aten::ones"] == ["1", "0", "composite"]
    assert table["aten::fake_quantize_per_tensor_affine_cachemask"] == ["0", "1", "fallback"]
    assert not any(name.startswith("aten::add.Tensor") for name in table)  # That was the CPU's.


def test_a_trace_without_a_program_asks_for_one():
    code, _, err = ask("--trace")
    assert code == 2 and "--trace needs a program: --trace script.py, and its arguments" in err


def test_a_trace_of_a_program_that_is_not_there_says_so():
    code, out, err = ask("--trace", "missing.py")
    assert (code, out) == (1, "")
    assert err.strip() == "There is no program missing.py; name one that can be read."


def test_a_second_trace_begins_anew():
    _C.start_trace()
    torch.ones(2, device="openreg")
    _C.start_trace()
    torch.zeros(2, device="openreg")
    counts = _C.stop_trace()
    assert counts["aten::zeros"] == (1, 0) and "aten::ones" not in counts
    torch.zeros(2, device="openreg")
    assert _C.stop_trace() == {}
