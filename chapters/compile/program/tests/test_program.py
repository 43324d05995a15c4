# SPDX-License-Identifier: BSD-3-Clause
"""Generated programs name their device and their streams, and change neither for the caller."""

import pytest
import torch
import torch.nn.functional as F
from programs import (
    branches_and_loops_are_part_of_the_program,
    called_by_threads,
    follows_its_caller,
    gradients,
    wave,
)
from running import printed
from torch import nn


def test_a_program_runs_on_the_device_of_its_inputs(compiled):
    x = torch.ones(8, device="openreg:1")
    found = compiled(x)
    assert (found.device, torch.openreg.current_device()) == (x.device, 0)
    assert torch.equal(found.cpu(), wave(x).cpu())


def test_one_program_may_use_two_devices():
    @torch.compile(fullgraph=True)
    def across(x, y):
        return (x + 1).to(y.device) * y + 2, x * 3

    x, y = torch.ones(8, device="openreg:0"), torch.ones(8, device="openreg:1")
    there, here = across(x, y)
    assert (there.device, here.device) == (y.device, x.device)
    assert (there == 4).all()
    assert (here == 3).all()
    assert torch.openreg.current_device() == 0


def test_a_program_runs_on_the_stream_of_its_caller(compiled):
    assert (follows_its_caller(compiled, torch.zeros(8, device="openreg")) == 1).all()


def test_a_program_may_choose_streams_and_record_events():
    side, done = torch.Stream("openreg"), torch.Event("openreg")

    @torch.compile(fullgraph=True)
    def two_streams(x):
        y = x + 1
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            z = y * 2
            z.record_stream(side)
            done.record()
        done.wait()
        return z + y

    x = torch.ones(8, device="openreg")
    for _ in range(3):
        assert (two_streams(x) == 6).all()


def test_a_program_may_choose_streams_by_the_names_of_the_package():
    side = torch.openreg.Stream()

    @torch.compile(fullgraph=True)
    def two_streams(x):
        side.wait_stream(torch.openreg.current_stream())
        with torch.openreg.stream(side):
            y = x * 2
        torch.openreg.current_stream().wait_stream(side)
        return y + x

    assert torch.equal(two_streams(torch.ones(8, device="openreg")).cpu(), torch.full((8,), 3.0))


def test_the_stream_of_a_device_that_is_named_is_one_of_that_device():
    @torch.compile(backend="eager")
    def ask(x):
        y = x + 1
        return y + 1, torch.openreg.current_stream(1)

    x, side = torch.ones(4, device="openreg:1"), torch.Stream("openreg:1")
    assert ask(x)[1] == torch.openreg.default_stream(1)
    with side:
        assert ask(x)[1] == side


def test_a_program_on_a_device_that_is_not_current_forks_and_joins():
    side = torch.Stream("openreg:1")

    @torch.compile
    def fork(x):
        y = x.sin()
        current = torch.openreg.current_stream(x.device)
        side.wait_stream(current)
        with torch.openreg.stream(side):
            z = y.cos() + 1
        current.wait_stream(side)
        return z * 2

    x = torch.randn(1 << 18, device="openreg:1")
    for _ in range(5):
        torch.testing.assert_close(fork(x), (x.sin().cos() + 1) * 2)


def test_several_threads_call_one_program(compiled):
    called_by_threads(compiled, wave, 8)


def test_one_program_serves_sizes_that_vary():
    counter = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    total = torch.compile(lambda x: (x * 2).sum(0) + x.shape[0], backend=counter, dynamic=True)
    for size in (3, 5, 64, 1000):
        x = torch.ones(size, 2, device="openreg")
        assert (total(x) == 3 * size).all()
    assert counter.frame_count == 1


def test_a_program_goes_on_after_what_cannot_be_traced():
    @torch.compile
    def broken(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * (2 if y.sum().item() > 0 else 3)

    assert (broken(torch.ones(8, device="openreg")) == 4).all()
    assert (broken(-3 * torch.ones(8, device="openreg")) == -6).all()


def test_branches_and_loops_are_part_of_the_program():
    branches_and_loops_are_part_of_the_program()


def test_autocast_is_compiled():
    model = nn.Linear(8, 8, device="openreg")

    def forward(x):
        with torch.autocast("openreg", dtype=torch.bfloat16):
            return F.gelu(model(x))

    x = torch.randn(4, 8, device="openreg")
    found = torch.compile(forward)(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, forward(x))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_an_optimizer_is_compiled(kind):
    def trained(compile):
        parameter = nn.Parameter(torch.ones(8, device="openreg"))
        optimizer = kind([parameter], lr=0.1)
        step = torch.compile(optimizer.step) if compile else optimizer.step
        for _ in range(2):
            parameter.grad = parameter.detach() * 3
            step()
        return parameter.detach()

    torch.testing.assert_close(trained(True), trained(False))


def test_a_custom_operator_gets_a_tensor_of_the_host_as_it_is():
    devices = []

    @torch.library.custom_op("openreg_compile_tests::take", mutates_args=())
    def take(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        devices.append(table.device.type)
        return table[index.cpu()].to(index.device)

    take.register_fake(lambda table, index: index.new_empty(index.shape, dtype=table.dtype))
    function = lambda table, index: take(table, index) * 2  # noqa: E731
    table, index = torch.arange(10.0), torch.tensor([1, 2], device="openreg")
    found = torch.compile(function)(table, index)
    assert (found.tolist(), devices) == ([2.0, 4.0], ["cpu"])


def test_a_custom_operator_stays_a_call():
    @torch.library.custom_op("openreg_compile_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    x = torch.ones(8, device="openreg")
    assert (torch.compile(lambda x: twice(x + 1) + 1, fullgraph=True)(x) == 5).all()


def test_random_numbers_are_those_of_eager_mode_on_request_and_otherwise_repeatable():
    def noisy(x):
        return F.dropout(x, 0.5) + torch.rand_like(x)

    x = torch.ones(64, device="openreg")

    def drawn(function):
        torch.manual_seed(1)
        return function(x)

    own = torch.compile(noisy)
    assert torch.equal(drawn(own), drawn(own))
    assert not torch.equal(own(x), own(x))
    with torch._inductor.config.patch(fallback_random=True):
        assert torch.equal(drawn(torch.compile(lambda x: noisy(x) + 0)), drawn(noisy))


def test_backward_is_compiled_as_a_whole():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).to("openreg")
    x = torch.ones(2, 4, device="openreg")
    expected = gradients(model, model, x)
    with torch._dynamo.compiled_autograd._enable(torch.compile):
        torch.testing.assert_close(gradients(model, model, x), expected)


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_every_mode_works(mode):
    x = torch.ones(8, 8, device="openreg")
    assert (torch.compile(lambda x: x @ x + 1, mode=mode)(x) == 9).all()


def test_an_exported_program_is_loaded_and_compiled(tmp_path):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).to("openreg")
    x = torch.randn(2, 8, device="openreg")
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    torch.testing.assert_close(torch.compile(loaded)(x), model(x))


def test_seeding_inside_a_compiled_function_breaks_the_graph_and_works():
    @torch.compile
    def seeded(x):
        torch.openreg.manual_seed(3)
        return x + torch.rand_like(x)

    x = torch.zeros(8, device="openreg")
    assert torch.equal(seeded(x), seeded(x))


STREAMS = """
import torch

def work(x, side):
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        y = (x * 2).sum(0)
    torch.accelerator.current_stream().wait_stream(side)
    return torch.cat([x + i for i in range(3)]).sum(0) - y

side, compiled = torch.Stream("openreg"), torch.compile(work)
for i in range(8):
    x = torch.full((16, 8), float(i), device="openreg")
    assert compiled(x, side).tolist() == [16.0 * i + 48] * 8
print("right")
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_streams_are_respected_in_any_schedule(seed):
    assert printed(STREAMS, OPENREG_SCHEDULE=f"seed:{seed}") == "right\n"
