# SPDX-License-Identifier: BSD-3-Clause
"""Whole training steps: a replay is equal to eager bit by bit."""

import copy

import differences
import pytest
import torch
from graphs import captured
from torch import nn
from torch.nn import functional as F

DEVICE = "openreg"


class Attention(nn.Module):
    """A small transformer that classifies sequences of tokens."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(1))


MODELS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 10)),
        lambda: torch.randn(8, 20)),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(8 * 9, 10),
        ),
        lambda: torch.randn(8, 1, 8, 8),
    ),
    "transformer": (Attention, lambda: torch.randint(0, 50, (8, 12))),
}  # fmt: skip

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, capturable=True),
}
FUSED = {
    "fused sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, fused=True),
    "fused adamw": lambda parameters: torch.optim.AdamW(
        parameters, lr=1e-3, capturable=True, fused=True
    ),
}


class Step:
    """One training step over tensors that stay in their place."""

    def __init__(self, net, optimizer, sample, amp=False):
        self.net, self.amp = net.to(DEVICE), amp
        self.optimizer = {**OPTIMIZERS, **FUSED}[optimizer](self.net.parameters())
        self.scaler = torch.amp.GradScaler(
            DEVICE, init_scale=1024.0, growth_interval=4, enabled=amp
        )
        self.x = sample.to(DEVICE)
        self.y = torch.zeros(len(sample), dtype=torch.long, device=DEVICE)

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.float16, enabled=self.amp, cache_enabled=False):
            loss = F.cross_entropy(self.net(self.x), self.y)
        self.scaler.scale(loss).backward()
        return loss

    def update(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def whole(self):
        loss = self()
        self.update()
        return loss

    def warm_up(self):
        torch.openreg.synchronize()
        with torch.Stream():
            for _ in range(3):
                self.whole()
        torch.openreg.synchronize()

    def state(self):
        return [each.detach().cpu() for each in self.net.state_dict().values()]


def steps(name, optimizer="sgd", **options):
    """Two steps of the same model after the same warm-up, and the batches to come."""
    make, sample = MODELS[name]
    torch.manual_seed(1)
    net = make()
    data = [(sample(), torch.randint(0, 10, (8,))) for _ in range(6)]
    first = sample()
    pair = [Step(copy.deepcopy(net), optimizer, first, **options) for _ in range(2)]
    for step in pair:
        torch.openreg.manual_seed(5)
        step.warm_up()
    return *pair, data


def compare(eager, replayed, data, action, then=lambda: None):
    """Captures `action` of the second step, and compares replays of it, each before `then()`."""
    graph, loss = captured(action)

    def replay():
        graph.replay()
        then()
        return loss

    results = []
    for step, run in ((eager, eager.whole), (replayed, replay)):
        torch.openreg.manual_seed(9)
        losses = []
        for x, y in data:
            step.x.copy_(x)
            step.y.copy_(y)
            losses.append(run().item())
        results.append((losses, step.state()))
    torch.testing.assert_close(*results, rtol=0, atol=0)
    assert len(set(results[0][0])) == len(data)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_training_step_is_the_eager_one(name, optimizer):
    eager, replayed, data = steps(name, optimizer)
    compare(eager, replayed, data, replayed.whole)


@pytest.mark.parametrize("name", MODELS)
def test_autocast_and_the_scaling_of_gradients_are_captured(name):
    eager, replayed, data = steps(name, amp=True)
    # The scaler asks the host whether a gradient is infinite, which a graph cannot.
    compare(eager, replayed, data, replayed, then=replayed.update)


@pytest.mark.parametrize("optimizer", FUSED)
@pytest.mark.parametrize("name", MODELS)
def test_a_fused_optimizer_lets_the_scaler_be_captured_too(name, optimizer):
    eager, replayed, data = steps(name, optimizer, amp=True)
    compare(eager, replayed, data, replayed.whole)
    assert eager.scaler.get_scale() == replayed.scaler.get_scale() > 1024.0


def test_another_optimizer_with_a_scaler_is_refused():
    _, replayed, _ = steps("mlp", amp=True)
    with pytest.raises(RuntimeError, match="orMemcpyAsync copies memory that is neither the dev"):
        captured(replayed.whole)


def test_capturable_must_be_said():
    # Without it, Adam's count of steps is a number of the host that each replay finds as it was.
    net = nn.Linear(4, 4).to(DEVICE)
    parameter = next(net.parameters())

    def changes(**options):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1, **options)
        for each in net.parameters():
            each.grad = torch.ones_like(each)
        torch.openreg.synchronize()
        with torch.Stream():
            optimizer.step()
        torch.openreg.synchronize()
        graph, _ = captured(optimizer.step)
        for _ in range(3):
            graph.replay()
        return optimizer.state[parameter]["step"].item()

    assert changes(capturable=True) == 4
    if differences.CAPTURABLE_CHECKED:
        with pytest.raises(RuntimeError, match="param_groups' capturable is False"):
            changes()
    else:
        assert changes() == 2
