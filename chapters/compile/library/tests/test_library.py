# SPDX-License-Identifier: BSD-3-Clause
"""A program in C++ computes what the program in Python computes, and a package runs without the compiler."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from programs import called_by_threads, follows_its_caller, gradients
from running import printed
from torch import nn
from torch._inductor import config


def in_cpp(function, *arguments, **settings):
    """The compiled function, after a first call with these arguments."""
    compiled = torch.compile(function, **settings)
    with config.patch(cpp_wrapper=True):
        compiled(*arguments)
    return compiled


def scaled(x):
    return (torch.sin(x) @ x.t()).relu() * x.shape[0]


@pytest.fixture(scope="module")
def program():
    return in_cpp(scaled, torch.ones(3, 4, device="openreg"), dynamic=True)


@pytest.mark.parametrize("size", [2, 5, 100])
def test_one_program_serves_sizes_that_vary(program, size):
    x = torch.randn(size, 4, device="openreg")
    with torch.compiler.set_stance("fail_on_recompile"):
        torch.testing.assert_close(program(x), scaled(x), rtol=1e-4, atol=1e-4)


def test_a_complex_number_is_an_operand():
    x = torch.tensor([1 + 2j, 3 - 1j], device="openreg")
    assert in_cpp(lambda x: torch.add(x * 2j, x, alpha=1j), x)(x).tolist() == [-6 + 3j, 3 + 9j]


def test_a_program_runs_on_the_stream_of_its_caller(program):
    assert (follows_its_caller(program, torch.zeros(3, 4, device="openreg")) == 0).all()


def test_threads_call_programs_on_two_devices(program):
    with config.patch(cpp_wrapper=True):
        program(torch.ones(3, 4, device="openreg:1"))
    called_by_threads(program, scaled, 3, 4)


def test_a_training_step_returns_the_gradients_of_eager_mode():
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    model.to("openreg")
    x = torch.randn(5, 4, device="openreg")
    expected = gradients(model, model, x)
    with config.patch(cpp_wrapper=True):
        torch.testing.assert_close(gradients(model, torch.compile(model), x), expected)


@pytest.mark.parametrize("as_in_eager_mode", [False, True])
def test_random_numbers_are_repeatable(as_in_eager_mode):
    def noisy(x):
        return F.dropout(x, 0.5) + torch.rand(64, device=x.device)

    def drawn(function):
        torch.manual_seed(1)
        return function(x)

    torch._dynamo.reset()
    x = torch.ones(64, device="openreg")
    with config.patch(cpp_wrapper=True, fallback_random=as_in_eager_mode):
        compiled = torch.compile(noisy)
        assert torch.equal(drawn(compiled), drawn(compiled))
        assert not torch.equal(compiled(x), compiled(x))
        assert torch.equal(drawn(compiled), drawn(noisy)) == as_in_eager_mode


def test_an_operator_that_refuses_says_why():
    @torch.library.custom_op("openreg_library_tests::refuse", mutates_args=())
    def refuse(x: torch.Tensor) -> torch.Tensor:
        if x.numel():
            raise ValueError("no thank you")
        return x.clone()

    refuse.register_fake(torch.empty_like)
    with pytest.raises(RuntimeError, match="no thank you"):
        in_cpp(lambda x: refuse(x) + 1, torch.ones(2, device="openreg"))


def test_streams_inside_a_program_are_refused():
    side = torch.Stream("openreg")

    def chosen(x):
        with side:
            return x * 2

    told = "A program in C.. for openreg runs on the stream that it is"
    with pytest.raises(Exception, match=told):
        in_cpp(chosen, torch.ones(2, device="openreg"))


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 32), nn.Linear(32, 16)
        self.register_buffer("scale", torch.full((16,), 2.0))

    def forward(self, x):
        return self.second(self.first(x).relu()).softmax(1) * self.scale


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model, and the path of the package that it was compiled to."""
    path = tmp_path_factory.mktemp("package") / "small.pt2"
    model = Small().to("openreg").eval()
    batch = ({0: torch.export.Dim("batch")},)
    x = torch.ones(3, 8, device="openreg")
    exported = torch.export.export(model, (x,), dynamic_shapes=batch)
    package = partial(torch._inductor.aoti_compile_and_package, exported, package_path=str(path))
    with pytest.raises(Exception, match=r"into the library \(this program has 5\)"):
        package()
    package(inductor_configs={"aot_inductor.package_constants_in_so": False})
    return model, path


def loaded(path, constants, index=0):
    package = torch._inductor.aoti_load_package(path, device_index=index)
    constants = {name: constants[name] for name in package.get_constant_fqns()}
    package.load_constants(constants, check_full_update=True, user_managed=True)
    return package


@pytest.mark.parametrize("index", [0, 1])
def test_a_package_runs_on_each_device(small, index):
    model, path = small
    device = torch.device("openreg", index)
    package = loaded(path, {k: v.to(device) for k, v in model.state_dict().items()}, index)
    for size in (1, 7):
        x = torch.randn(size, 8)
        found = package(x.to(device))
        assert found.device == device
        torch.testing.assert_close(found.cpu(), model(x.to("openreg")).cpu().detach())


def test_constants_are_exchanged_and_copies_refused(small):
    model, path = small
    x = torch.randn(3, 8, device="openreg")
    other = Small().to("openreg")
    package = loaded(path, model.state_dict())
    torch.testing.assert_close(package(x), model(x))
    package.load_constants(dict(other.state_dict()), check_full_update=True, user_managed=True)
    torch.testing.assert_close(package(x), other(x))
    with pytest.raises(RuntimeError, match="cannot copy its constants to the device: move them th"):
        package.load_constants(dict(model.state_dict()), check_full_update=True)
    with pytest.raises(RuntimeError, match="move them there, and pass user_managed=True"):
        on_host = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
        package.load_constants(on_host, check_full_update=True, allow_h2d_copy=True)


def test_a_package_runs_on_the_stream_of_its_caller(small):
    model, path = small
    x = torch.zeros(3, 8, device="openreg")
    found = follows_its_caller(loaded(path, model.state_dict()), x)
    torch.testing.assert_close(found, model(x))


LOAD = """
import sys, torch
from running import on_threads
package, weights = torch._inductor.aoti_load_package(sys.argv[1]), torch.load(sys.argv[2])
x, expected = weights.pop("x"), weights.pop("expected")
package.load_constants(weights, check_full_update=True, user_managed=True)
"""
BY_TWO_THREADS = """
def call(_):
    for _ in range(200):
        found = package(x)
    torch.testing.assert_close(found, expected)
    print("right")

on_threads(call, range(2))
"""
FRESH = """
torch.testing.assert_close(package(x), expected)
print([name for name in sys.modules if name.startswith("torch_openreg.compile")])
"""


def said_by(program, small, folder):
    """What a process prints that has loaded the package of `small`, an input and its result."""
    model, path = small
    x = torch.randn(3, 8, device="openreg")
    saved = folder / "weights.pt"
    torch.save(dict(model.state_dict(), x=x, expected=model(x).detach()), saved)
    return printed(LOAD + program, path, saved)


def test_a_process_without_our_compiler_runs_a_package(small, tmp_path):
    assert said_by(FRESH, small, tmp_path) == "[]\n"


def test_threads_call_one_package(small, tmp_path):
    assert said_by(BY_TWO_THREADS, small, tmp_path) == "right\nright\n"
