# SPDX-License-Identifier: BSD-3-Clause
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from running import on_a_thread, run

X = torch.arange(3.0)
NAME = "aten::fake_quantize_per_tensor_affine_cachemask"

# Operators of nobody's device, one of each kind that must not fall back.
library = torch.library.Library("fallback_test", "FRAGMENT")
library.define("view(Tensor(a) x) -> Tensor(a)")
library.define("reshape_(Tensor(a!) x) -> Tensor(a!)", tags=torch.Tag.inplace_view)
library.define("draw(Tensor x) -> Tensor", tags=torch.Tag.nondeterministic_seeded)
library.define("backward_only(Tensor x) -> Tensor")
for name in ("view", "reshape_", "draw", "backward_only"):
    library.impl(name, lambda x: x.clone(), "CPU")
library.define("nowhere(Tensor x) -> Tensor")
library.define("two(Tensor(a!) x, Tensor(b!) y) -> (Tensor(b!), Tensor)")
library.define("several(Tensor(a!)[] x, Tensor? y) -> ()")
library.impl("two", lambda x, y: (y.mul_(x.add_(1).sum().int()), x.sum()), "CPU")
library.define("on(Tensor(a!) x, Tensor y, Device d) -> Tensor")
library.impl("on", lambda x, y, d: torch.ones(1, device=d) + x.add_(1) + y, "CPU")
library.impl("several", lambda x, y: [z.add_(y) for z in x] and None, "CPU")


def fall_back(x):
    return torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 9)


# PyTorch is imported once, and has not started a device when the children are forked.
PROGRAM = """
import os, sys, torch

for policy in ("silent", "", "warn", "error", "maybe"):
    print("==", policy, file=sys.stderr, flush=True)
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    os.environ["OPENREG_FALLBACK"] = policy
    try:
        torch.fake_quantize_per_tensor_affine(torch.ones(3, device="openreg"), 1.0, 0, 0, 9)
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
    os._exit(0)
"""


@pytest.mark.library  # nothing else falls back
def test_what_falls_back_is_counted():
    torch.openreg.reset_fallback_report()
    fall_back(torch.ones(3, device="openreg"))
    fall_back(torch.ones(3, device="openreg"))
    assert torch.openreg.fallback_report() == {NAME: 2}
    torch.openreg.reset_fallback_report()
    assert torch.openreg.fallback_report() == {}


@pytest.mark.library  # it has a library
def test_library_operators_do_not_fall_back():
    torch.openreg.reset_fallback_report()
    x = torch.rand(4, 4, device="openreg")
    ((x @ x + 2).relu().softmax(0) * x).sum().item()
    assert torch.openreg.fallback_report() == {}


@pytest.mark.library  # nothing else falls back
def test_the_environment_can_make_it_silent_warn_or_refuse():
    parts = (part.partition("\n") for part in run(PROGRAM).stderr.split("== ")[1:])
    said = {policy: words for policy, _, words in parts}
    assert said["silent"] == said[""] == ""
    assert f"{NAME} has no openreg kernel and runs on the CPU; this is said once." in said["warn"]
    refused = (
        f'{NAME} has no openreg kernel, and the fallback policy "error" forbids the CPU\'s; '
        '"warn" and "silent" allow it, in OPENREG_FALLBACK or torch.openreg.fallback.'
    )
    assert refused in said["error"]
    not_allowed = "OPENREG_FALLBACK=maybe is not allowed; it must be silent, warn or error."
    assert not_allowed in said["maybe"]


def test_an_import_refuses_a_policy_that_does_not_exist():
    done = run("import torch; import torch_openreg", OPENREG_FALLBACK="xyz")
    sentence = "OPENREG_FALLBACK=xyz is not allowed; it must be silent, warn or error."
    assert f"This process has no device openreg: ValueError: {sentence}" in done.stderr
    assert done.stderr.strip().endswith(f"ValueError: {sentence}")


def test_a_block_refuses_and_the_policy_returns_when_it_ends():
    x = X.to("openreg")
    with torch.openreg.fallback("error"):
        with torch.openreg.fallback("silent"):
            fall_back(x)
        with pytest.raises(NotImplementedError, match=f"{NAME} has no openreg kernel"):
            fall_back(x)
    fall_back(x)


def test_a_block_that_ends_in_an_error_gives_the_policy_back():
    with pytest.raises(KeyError), torch.openreg.fallback("error"):
        raise KeyError
    fall_back(X.to("openreg"))


def test_what_was_refused_is_not_in_the_books():
    torch.openreg.reset_fallback_report()
    with pytest.raises(NotImplementedError), torch.openreg.fallback("error"):
        fall_back(X.to("openreg"))
    assert torch.openreg.fallback_report() == {}


def test_an_operator_that_nobody_has_is_refused_without_naming_the_cpu_as_its_device():
    torch.openreg.reset_fallback_report()
    sentence = (
        "fallback_test::nowhere has no openreg kernel, and the CPU has none either; "
        "register one for PrivateUse1."
    )
    with pytest.raises(NotImplementedError, match=re.escape(sentence)):
        torch.ops.fallback_test.nowhere(X.to("openreg"))
    assert torch.openreg.fallback_report() == {}


def test_a_policy_also_decorates_a_function():
    @torch.openreg.fallback("error")
    def strict():
        return fall_back(X.to("openreg"))

    with pytest.raises(NotImplementedError, match="forbids"):
        strict()


def test_a_policy_also_decorates_a_generator_and_holds_while_it_runs():
    @torch.openreg.fallback("error")
    def strict():
        yield torch.openreg.fallback_report()
        yield fall_back(X.to("openreg"))

    steps = strict()
    next(steps)
    fall_back(X.to("openreg"))
    with pytest.raises(NotImplementedError, match="forbids"):
        next(steps)


def test_blocks_may_end_in_any_order():
    x = X.to("openreg")
    outer, inner = torch.openreg.fallback("silent"), torch.openreg.fallback("error")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    with pytest.raises(NotImplementedError, match="forbids"):
        fall_back(x)
    inner.__exit__(None, None, None)
    fall_back(x)


def test_a_block_within_itself_is_two():
    strict = torch.openreg.fallback("error")
    with strict:
        with strict, torch.openreg.fallback("silent"):
            fall_back(X.to("openreg"))
        with pytest.raises(NotImplementedError, match="forbids"):
            fall_back(X.to("openreg"))
    fall_back(X.to("openreg"))


def test_a_policy_that_does_not_exist_is_refused():
    sentence = 'There is no fallback policy "maybe"; it must be "silent", "warn" or "error".'
    with pytest.raises(ValueError, match=sentence), torch.openreg.fallback("maybe"):
        pass


def test_a_warning_names_each_operator_once():
    x = X.to("openreg")
    fall_back(x)  # Having fallen back in silence is no reason not to be named.
    torch.openreg.reset_fallback_report()
    with warnings.catch_warnings(record=True) as caught, torch.openreg.fallback("warn"):
        warnings.simplefilter("always")
        for _ in range(3):
            fall_back(x)
        torch.linalg.eig(torch.eye(2).to("openreg"))
    said = [str(warning.message).split()[0] for warning in caught]
    assert said.count(NAME) == 1
    assert len(said) == len(set(said)) == 2


def test_a_block_that_threads_share_ends_for_each_of_them():
    strict, x = torch.openreg.fallback("error"), X.to("openreg")
    turn = threading.Barrier(2, timeout=60)

    def other():
        with strict:
            turn.wait()
            turn.wait()
            with pytest.raises(NotImplementedError, match="forbids"):
                fall_back(x)
        return fall_back(x).numel()

    with ThreadPoolExecutor(1) as pool:
        with strict:
            result = pool.submit(other)
            turn.wait()
        assert fall_back(x).numel() == 3
        turn.wait()
        assert result.result() == 3


def test_another_thread_keeps_its_policy():
    x = X.to("openreg")
    with torch.openreg.fallback("error"):
        assert on_a_thread(lambda: fall_back(x)).numel() == 3


@pytest.mark.library  # nothing else falls back
def test_a_backward_pass_takes_the_policy_along():
    threads = []

    def fall_back_in_backward(grad):
        threads.append(threading.get_ident())
        return torch.ops.fallback_test.backward_only(grad)

    def loss():
        y = X.to("openreg").requires_grad_() * 2
        y.register_hook(fall_back_in_backward)
        return y.sum()

    outside = loss()
    told = "fallback_test::backward_only has no openreg"
    with torch.openreg.fallback("error"), pytest.raises(NotImplementedError, match=told):
        outside.backward()
    loss().backward()
    assert len(threads) == 2 and threading.get_ident() not in threads


@pytest.mark.parametrize("call,sentence", [
    (lambda x: torch.ops.fallback_test.view(x),
     "fallback_test::view has no openreg kernel, and must not run on the CPU: its result "
     "shares memory with an argument, and what comes back from the CPU does not; use an "
     "operator that copies."),
    (lambda x: torch.ops.fallback_test.reshape_(x), "reshape_ .* shares memory"),
    (lambda x: torch.ops.fallback_test.draw(x),
     "fallback_test::draw has no openreg kernel, and must not run on the CPU: it draws "
     "random numbers, and the CPU's are not those of this device's seed; draw them on the "
     "CPU, and move them."),
    (lambda x: torch.ops.aten.from_file("f", device=x.device),
     "aten::from_file has no openreg kernel, and must not run on the CPU: it makes a "
     "tensor of nothing, which the CPU would do in the host's memory; make it with "
     'device="cpu", and move it.'),
])  # fmt: skip
def test_views_factories_and_random_operators_never_fall_back(call, sentence):
    with torch.openreg.fallback("silent"), pytest.raises(NotImplementedError, match=sentence):
        call(X.to("openreg"))


two, several = torch.ops.fallback_test.two, torch.ops.fallback_test.several
SHARING = {
    "the same tensor twice": lambda z: (z, *two(z, z)),
    "two parts of one": lambda z: (z, *two(z[:3], z[2:].view(2, 2))),
    "a part, as other numbers": lambda z: (z, *two(z[:2], z.view(torch.int32)[6:])),
    "nothing shared": lambda z: (z, *two(z, z.clone())),
    "one in a list and one beside it": lambda z: (z, several([z[1:], z.clone()], z[:1])),
    "one in a list twice": lambda z: (z, several([z, z], z[0].clone())),
}


@pytest.mark.parametrize("name", SHARING)
def test_arguments_that_share_memory_share_it_on_the_cpu(name):
    here, there = (SHARING[name](torch.arange(6.0).to(place)) for place in ("openreg", "cpu"))
    for ours, theirs in zip(here, there, strict=True):
        assert theirs is None or torch.equal(ours.cpu(), theirs)
        assert theirs is None or ours.device.type == "openreg"


def test_an_output_in_the_memory_of_an_input_is_resized_as_on_the_cpu():
    for place in ("cpu", "openreg"):
        matrix = torch.eye(3, dtype=torch.complex64, device=place) * 2
        out = matrix.view(-1)[:2]
        torch.linalg.eigvals(matrix, out=out)
        assert out.tolist() == [2, 2, 2] and matrix[0].tolist() == [2, 2, 2]


def test_a_custom_operator_may_write_on_the_host_too():
    for places in [("cpu", "openreg"), ("openreg", "cpu")]:
        x, y = (torch.ones(3, device=place) for place in places)
        returned, total = two(x, y)
        assert returned is y and total.device.type == "openreg"
        assert x.tolist() == [2, 2, 2] and y.tolist() == [6, 6, 6] and total.item() == 6


def test_a_device_among_the_arguments_is_that_of_the_copies():
    x = torch.ones(4, device="openreg")
    found = torch.ops.fallback_test.on(x[:2], x[2:], x.device)
    assert found.tolist() == [4, 4] and found.device == x.device and x.tolist() == [2, 2, 1, 1]


def test_a_written_argument_that_is_returned_is_the_same_tensor():
    x, y = (torch.ones(3, device="openreg") for _ in range(2))
    assert two(x, y)[0] is y
    assert two(x, x)[0] is x


@pytest.mark.parametrize("indices", [torch.tril_indices, torch.triu_indices])
@pytest.mark.parametrize("size", [(3, 4), (4, 3), (0, 2)])
@pytest.mark.parametrize("offset", [-2, 0, 1, 9])
def test_triangles_are_listed_on_the_device(indices, size, offset):
    with torch.openreg.fallback("error"):
        here = indices(*size, offset=offset, dtype=torch.int32, device="openreg:1")
    assert here.device.index == 1
    assert torch.equal(here.cpu(), indices(*size, offset=offset, dtype=torch.int32))


@pytest.mark.parametrize("indices", [torch.tril_indices, torch.triu_indices])
def test_a_triangle_of_a_negative_size_or_of_a_dtype_without_indices_is_refused_at_once(indices):
    with pytest.raises(RuntimeError, match="row must be non-negative, got-1"):
        indices(-1, 2, device="openreg")
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        indices(3, 3, dtype=torch.float32, device="openreg")


def test_zeros_without_memory_are_made_for_the_device():
    zeros = torch._efficientzerotensor(2, 3, device="openreg:1")
    assert zeros.device == torch.device("openreg:1") and zeros._is_zerotensor()
    assert (zeros + torch.ones(3, device="openreg:1")).tolist() == [[1.0] * 3] * 2
