# SPDX-License-Identifier: BSD-3-Clause
"""What an operator receives under each of PyTorch's autocast rules, and which rules there are."""

import autocast_rules
import differences
import pytest
import torch

LOW, WIDE, LEFT_ALONE = torch.bfloat16, torch.float32, torch.float64
RULES = autocast_rules.rules(autocast_rules.header().read_text())
RULES["fp32"] += ["linalg_matrix_sqrth"] if differences.MATRIX_SQRTH else []
ROWS = [pytest.param(policy, name, id=name) for policy in RULES for name in RULES[policy]]
REFUSED = "binary_cross_entropy"
CALLED_INSTEAD = {
    "norm.Scalar": "norm.ScalarOpt_dtype",
    "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype",
}


def registered(key):
    """The operators that have a kernel of their own for the key."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def overload(name):
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def test_we_register_what_the_header_lists_and_the_ban():
    listed = {name for names in RULES.values() for name in names}
    assert registered("AutocastPrivateUse1") == listed | {REFUSED}


def test_cuda_has_no_rule_that_we_lack_but_for_its_own_library():
    ours, cuda = registered("AutocastPrivateUse1"), registered("AutocastCUDA")
    assert {name for name in cuda - ours if not name.lstrip("_").startswith("cudnn_")} == set()
    assert ours - cuda == set()


class Received(Exception):
    """What a spy below autocast saw: the types of the tensors, and `dtype`."""


def spy_on(op):
    names = [argument.name for argument in op._schema.arguments]

    def spy(*arguments, **options):
        options |= zip(names, arguments, strict=False)
        lists = [x if isinstance(x, (list, tuple)) else [x] for x in options.values()]
        tensors = [x for values in lists for x in values if isinstance(x, torch.Tensor)]
        types = {x.dtype for x in tensors if x.is_floating_point()}
        raise Received(types, options.get("dtype"))

    return spy


def value_for(kind, tensors):
    """Something that the schema allows, which no kernel will see."""
    if kind == "List[Optional[Tensor]]":
        return [torch.ones(1, dtype=torch.int64, device="openreg")]
    if kind.startswith("List["):
        return [value_for(kind[5:-1], tensors)]
    if kind.startswith("Optional["):
        return value_for(kind[9:-1], tensors)
    plain = {"int": 1, "number": 1, "float": 1.0, "bool": False, "str": "mean"}
    return next(tensors) if kind == "Tensor" else plain[kind]


def received(name, *dtypes, dtype=None):
    """Calls the operator in autocast with tensors of these types in turn."""
    watched = CALLED_INSTEAD.get(name, name)
    tensors = (torch.ones(1, dtype=d, device="openreg") for _ in range(9) for d in dtypes)
    given = {
        argument.name: dtype if argument.name == "dtype" else value_for(str(argument.type), tensors)
        for argument in overload(name)._schema.arguments
    }
    library = torch.library.Library("aten", "IMPL")
    try:
        library.impl(watched, spy_on(overload(watched)), "AutogradPrivateUse1")
        with torch.autocast("openreg", dtype=LOW), pytest.raises(Received) as caught:
            overload(name)(**given)
    finally:
        library._destroy()
    return caught.value.args


@pytest.mark.parametrize("policy, name", ROWS)
def test_the_operator_receives_what_its_policy_says(policy, name):
    if policy == "lower_precision_fp":
        assert received(name, WIDE)[0] == {LOW}
    elif policy == "fp32":
        assert received(name, LOW)[0] == {WIDE}
    elif policy == "fp32_set_opt_dtype":
        assert received(name, LOW) == ({LOW}, WIDE)
        assert received(name, LOW, dtype=LOW) == ({LOW}, LOW)
        assert received(name, LEFT_ALONE) == ({LEFT_ALONE}, None)
    elif policy == "fp32_append_dtype":
        assert received(name, LOW) == ({LOW}, WIDE)
        assert received(name, LEFT_ALONE) == ({LEFT_ALONE}, LEFT_ALONE)
    else:
        assert received(name, LOW, WIDE)[0] == {WIDE}
        assert received(name, WIDE, LOW)[0] == {WIDE}
        assert received(name, LOW)[0] == {LOW}


@pytest.mark.parametrize("policy, name", ROWS)
def test_doubles_reach_every_operator_as_they_are(policy, name):
    assert received(name, LEFT_ALONE)[0] == {LEFT_ALONE}


@pytest.mark.parametrize("change, sentence", [
    (lambda text: text + "#define AT_FORALL_FP8(_) \\\n  _(mm)\n",
     "PyTorch has a list AT_FORALL_FP8, which has no policy"),
    (lambda text: text.replace("_(pow, Scalar)", "_(pow, Scalar, 1)"),
     "An entry of AT_FORALL_FP32 has a form"),
    (lambda text: text.replace("AT_FORALL_PROMOTE(_)", "AT_PROMOTE(_)"),
     "PyTorch's header has no list for promote."),
], ids=["no policy", "another form", "no list"])  # fmt: skip
def test_a_header_that_is_not_understood_is_refused(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        autocast_rules.rules(change(autocast_rules.header().read_text()))
