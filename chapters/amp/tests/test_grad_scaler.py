# SPDX-License-Identifier: BSD-3-Clause
"""`torch.amp.GradScaler("openreg")`: what a training loop sees of it."""

import copy
import itertools

import pytest
import torch

DEVICE = "openreg"
INF, NAN = float("inf"), float("nan")
pytestmark = pytest.mark.usefixtures("both_operators_stay_on_the_device")


def linear(device=DEVICE):
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2).to(device)


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.1, **options)


def backward(scaler, model, factor=1.0):
    device = model.weight.device
    loss = model(torch.ones(3, 4, device=device)).pow(2).mean() * factor
    scaler.scale(loss).backward()


OPTIMIZERS = [
    (optimizer, form)
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad)
    for form in ("plain", "foreach", "fused")
]


@pytest.mark.parametrize("optimizer, form", OPTIMIZERS)
def test_it_trains_as_on_the_cpu_through_an_infinite_step(optimizer, form):
    options = {} if form == "plain" else {form: True}
    results = []
    for device in (DEVICE, "cpu"):
        model, scales = linear(device), []
        steps = optimizer(model.parameters(), lr=0.1, **options)
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        for step in range(5):
            steps.zero_grad()
            backward(scaler, model, INF if step == 2 else 1.0)
            scaler.step(steps)
            scaler.update()
            scales.append(scaler.get_scale())
        results.append((scales, model.weight.detach().cpu()))
    (scales, weight), (right_scales, right_weight) = results
    assert scales == right_scales == [8, 16, 8, 8, 16]
    torch.testing.assert_close(weight, right_weight)
    assert torch.openreg.fallback_report() == {}


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_a_step_with_a_gradient_that_is_not_finite_is_skipped(bad):
    model = linear()
    optimizer, scaler = sgd(model, momentum=0.9), torch.amp.GradScaler(DEVICE, init_scale=4.0)
    before = copy.deepcopy(model.state_dict())
    backward(scaler, model)
    model.weight.grad[1, 2] = bad
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)
    assert not optimizer.state, "momentum has not begun"


def test_one_optimizer_may_skip_and_another_step():
    good, bad = linear(), linear()
    optimizers, scaler = [sgd(good), sgd(bad)], torch.amp.GradScaler(DEVICE, init_scale=4.0)
    before = good.weight.detach().clone()
    backward(scaler, good)
    backward(scaler, bad, INF)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(good.weight, before)
    assert torch.equal(bad.weight, before)
    assert scaler.get_scale() == 2, "one of them was enough"


def test_gradients_can_be_clipped_once_they_are_unscaled():
    model = linear()
    optimizer, scaler = sgd(model), torch.amp.GradScaler(DEVICE, init_scale=1024.0)
    backward(scaler, model)
    scaler.unscale_(optimizer)
    plain = linear()
    plain(torch.ones(3, 4, device=DEVICE)).pow(2).mean().backward()
    torch.testing.assert_close(model.weight.grad, plain.weight.grad)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    assert norm.item() > 0.01
    before = model.weight.detach().clone()
    scaler.step(optimizer)
    moved = (model.weight - before).norm().item()
    assert 0 < moved <= 0.1 * 0.0101, "not unscaled again, and not more than was clipped"
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        scaler.unscale_(optimizer)


def test_its_state_goes_to_a_checkpoint_and_comes_back():
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0, growth_interval=3)
    model = linear()
    for _ in range(2):
        backward(scaler, model)
        scaler.step(sgd(model))
        scaler.update()
    state = scaler.state_dict()
    assert (state["scale"], state["_growth_tracker"]) == (8.0, 2)
    restored = torch.amp.GradScaler(DEVICE)
    restored.load_state_dict(state)
    backward(restored, model)
    restored.step(sgd(model))
    restored.update()
    assert restored.get_scale() == 16, "the third step was the one to grow"


@pytest.mark.parametrize("bad", [None, 0, 1])
def test_gradients_may_be_on_two_devices(bad):
    models = [linear("openreg:0"), linear("openreg:1")]
    parameters = itertools.chain(*(model.parameters() for model in models))
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0)
    before = [model.weight.detach().clone() for model in models]
    for index, model in enumerate(models):
        backward(scaler, model, INF if index == bad else 1.0)
    scaler.step(optimizer)
    scaler.update()
    changed = [not torch.equal(m.weight, b) for m, b in zip(models, before, strict=True)]
    assert changed == [bad is None] * 2, "all of an optimizer's parameters step, or none"
    assert scaler.get_scale() == (4 if bad is None else 2)


def test_float16_gradients_are_refused_by_the_scaler():
    model = linear().half()
    scaler = torch.amp.GradScaler(DEVICE)
    scaler.scale(model(torch.ones(3, 4, device=DEVICE).half()).float().sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(sgd(model))


def test_what_vanishes_in_float16_is_saved_by_the_scale():
    weight = torch.nn.Parameter(torch.ones(1, device=DEVICE))
    small = 2.0**-26  # below the smallest number of float16
    for scale, right in ((1.0, 0.0), (2.0**16, small)):
        scaler, weight.grad = torch.amp.GradScaler(DEVICE, init_scale=scale), None
        half = weight.half()
        scaler.scale((half.float() * small).sum()).backward()
        scaler.unscale_(torch.optim.SGD([weight], lr=1.0))
        assert weight.grad.item() == right
