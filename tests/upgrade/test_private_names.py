# SPDX-License-Identifier: BSD-3-Clause
"""The list of PyTorch's private names that we use, and whether this PyTorch still has them."""

import importlib
import importlib.util
from pathlib import Path

import drift
import private_names
import pytest

NAMES = private_names.private_names()

PYTHON = """\
import torch
from torch._ops import OpOverload as Op
from torch.utils import _pytree
from ._device import _index
torch._C._dispatch_dump_table("x")
_pytree.tree_map(len, Op.name)
torch.nn.functional.relu(torch.__version__, torch.ops.aten._private)
_index(_C.device)
"""
CPP = """\
#include <ATen/detail/PrivateUse1HooksInterface.h>
auto a = at::native::view(x);  // at::native::in_a_comment
at::Tensor b = sdp::check(c10::impl::Guard{}, at::add(x));
"""


def test_in_python_a_name_with_an_underscore_is_private():
    assert sorted(private_names.names_in_python(PYTHON)) == [
        ("torch._C._dispatch_dump_table", 5),
        ("torch._ops.OpOverload", 2),
        ("torch._ops.OpOverload.name", 6),
        ("torch.utils._pytree", 3),
        ("torch.utils._pytree.tree_map", 6),
    ]


def test_in_cpp_a_name_in_a_namespace_of_pytorch_s_own_is_private():
    assert list(private_names.names_in_cpp(CPP)) == [
        ("at::native::view", 2),
        ("sdp::check", 3),
        ("c10::impl::Guard", 3),
    ]


def test_the_list_has_names_of_both_languages_with_file_and_line():
    text = (private_names.ROOT / "python/torch_openreg/__init__.py").read_text().splitlines()
    ((file, line),) = NAMES["torch._register_device_module"]
    assert file == "python/torch_openreg/__init__.py"
    assert "_register_device_module" in text[line - 1]
    assert "c10::impl::DeviceGuardImplInterface" in NAMES


@pytest.fixture(scope="module")
def words():
    torch = importlib.util.find_spec("torch").origin
    return drift.words_in(Path(torch).parent / "include")


@pytest.mark.parametrize("name", NAMES)
def test_this_pytorch_has_the_name(name, words):
    assert private_names.exists(name, importlib.import_module, words), NAMES[name]


@pytest.mark.parametrize(
    "name", ["torch._C._no_such_name", "torch._nowhere.x", "at::native::noSuch"]
)
def test_a_name_that_pytorch_does_not_have_is_noticed(name, words):
    assert not private_names.exists(name, importlib.import_module, words)


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("torch.testing._internal.common_methods_invocations.op_db", True),
        ("torch.testing._internal.common_methods_invocations", True),
        ("torch.testing._internal.common_methods_invocations.no_such_name", False),
        ("torch.testing._internal.no_such_module.op_db", False),
    ],
)
def test_a_module_that_cannot_be_imported_for_lack_of_another_package_is_read(name, has, words):
    def modules(module):
        if "testing" in module:
            raise ModuleNotFoundError("No module named 'expecttest'", name="expecttest")
        return importlib.import_module(module)

    assert private_names.exists(name, modules, words) == has
