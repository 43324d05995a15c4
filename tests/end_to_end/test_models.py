# SPDX-License-Identifier: BSD-3-Clause
"""Whole models: what they compute is what the CPU computes, and all of it on the device."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    """Convolutions with batch norm around a shortcut, pooled and classified."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.body = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
        )
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))

    def forward(self, images):
        x = self.stem(images)
        return self.head(F.relu(x + self.body(x)))


class Recurrent(nn.Module):
    """The last state of a recurrent layer, classified."""

    def __init__(self, layer, **options):
        super().__init__()
        self.layer = layer(6, 8, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(16 if options.get("bidirectional") else 8, 5)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def encoder():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(7 * 16, 5))


MODELS = {
    "residual": (Residual, lambda: torch.randn(4, 3, 32, 32)),
    "encoder": (encoder, lambda: torch.randn(4, 7, 16)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(4, 7, 6)),
    "lstm-both-ways": (lambda: Recurrent(nn.LSTM, bidirectional=True, bias=False),
                       lambda: torch.randn(4, 7, 6)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(4, 7, 6)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_falls_back():
    torch.openreg.reset_fallback_report()
    yield
    assert torch.openreg.fallback_report() == {}


def train(model, inputs, targets, optimizer):
    """Two steps with an optimizer, then an evaluation."""
    optimizer = optimizer(model.parameters())
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    model.eval()
    with torch.no_grad():
        return torch.stack(losses), model(inputs)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_trains_as_on_the_cpu_without_leaving_the_device(name):
    torch.manual_seed(0)
    make, draw = MODELS[name]
    model, inputs, targets = make(), draw(), torch.randint(0, 5, (4,))
    ours = copy.deepcopy(model).to("openreg")
    # Momentum in one step and none in the next shows a gradient that is only nearly right.
    optimizer = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)  # noqa: E731
    expected = train(model, inputs, targets, optimizer)
    computed = train(ours, inputs.to("openreg"), targets.to("openreg"), optimizer)
    for here, there in zip(computed, expected, strict=True):
        torch.testing.assert_close(here.cpu(), there, rtol=1e-3, atol=1e-4)
    for (key, here), there in zip(ours.state_dict().items(), model.state_dict().values()):
        torch.testing.assert_close(
            here.cpu(), there, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
        )


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("how", ["foreach", "fused", "plain"])
def test_an_optimizer_steps_on_the_device(kind, how):
    def step(device):
        parameters = [torch.arange(4.0, device=device), torch.ones(2, 3, device=device)]
        for parameter in parameters:
            parameter.requires_grad_()
        options = {} if how == "plain" else {how: True}
        optimizer = kind(parameters, lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            sum((p * p).sum() for p in parameters).backward()
            optimizer.step()
        return [p.detach().cpu() for p in parameters]

    for here, there in zip(step("openreg"), step("cpu"), strict=True):
        torch.testing.assert_close(here, there)


@pytest.mark.parametrize(
    "values",
    [
        [[1.0, -2.5], [3e-5, 4e8]],
        [float("nan"), float("inf"), 1.0],
        [1, 20, -300],
        [True, False],
        [1 + 2j, -0.5j],
        [],
        list(range(2000)),
    ],
)
def test_a_tensor_is_printed_as_on_the_cpu(values):
    here, there = torch.tensor(values, device="openreg"), torch.tensor(values)
    assert repr(here).replace(", device='openreg:0'", "") == repr(there)


def test_tensors_are_made_on_the_device():
    for make in [
        lambda d: torch.arange(3, 30, 4, device=d),
        lambda d: torch.linspace(0, 1, 7, device=d),
        lambda d: torch.logspace(0, 2, 5, device=d),
        lambda d: torch.eye(3, 4, device=d),
        lambda d: torch.full((2, 2), 7, device=d),
        lambda d: torch.tril(torch.ones(3, 3, device=d)),
        lambda d: torch.randperm(20, device=d).sort().values,
    ]:
        assert torch.equal(make("openreg").cpu(), make("cpu"))


def test_indexing_stays_on_the_device():
    for index in [
        lambda d: (torch.tensor([2, 0], device=d),),
        lambda d: (torch.tensor([[True], [False], [True]], device=d).expand(3, 4),),
        lambda d: (slice(None), torch.tensor([1, 1, -1], device=d)),
        lambda d: (torch.tensor([0, 1]), torch.tensor([1, 2])),  # from the host
    ]:
        results = []
        for device in ["cpu", "openreg"]:
            x = torch.arange(12.0, device=device).reshape(3, 4).requires_grad_()
            picked = x[index(device)]
            (picked * picked).sum().backward()
            y = x.detach().clone()
            y[index(device)] = -1
            results.append((picked.detach().cpu(), x.grad.cpu(), y.cpu()))
        for there, here in zip(*results, strict=True):
            assert torch.equal(there, here)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_computes_again_with_the_same_random_numbers(reentrant):
    dropout = torch.nn.Dropout(0.5)
    x = torch.ones(1000, device="openreg", requires_grad=True)
    y = checkpoint(lambda x: dropout(x).mul(x), x, use_reentrant=reentrant)
    kept = y.detach() != 0
    y.sum().backward()
    assert torch.equal(x.grad != 0, kept)
