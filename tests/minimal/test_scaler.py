# SPDX-License-Identifier: BSD-3-Clause
"""Without kernels of its own, `torch.amp.GradScaler` works through the counted fallback."""

import pytest
from asking import outcomes

OPERATORS = ["_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"]
PROGRAM = """
weights = [torch.nn.Parameter(torch.ones(n, device="openreg")) for n in (3, 5)]
optimizer = torch.optim.SGD(weights, lr=0.5)
scaler = torch.amp.GradScaler("openreg", init_scale=8.0, growth_interval=1)
for factor in (1.0, float("inf"), 1.0):
    optimizer.zero_grad()
    scaler.scale(sum((factor * weight).sum() for weight in weights)).backward()
    scaler.unscale_(optimizer)
    print([weight.grad[0].item() for weight in weights])
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale(), [weight[0].item() for weight in weights])
"""


@pytest.fixture(scope="module")
def runs():
    return outcomes(
        [["", PROGRAM], [",".join(f"PrivateUse1.{name}" for name in OPERATORS), PROGRAM]]
    )


def test_the_fallback_scales_unscales_and_skips_as_the_kernels_do(runs):
    with_kernels, without = runs
    assert with_kernels["raised"] == without["raised"] == ""
    assert without["printed"] == with_kernels["printed"]
    assert without["printed"].splitlines() == [
        "[1.0, 1.0]",
        "16.0 [0.5, 0.5]",
        "[inf, inf]",
        "8.0 [0.5, 0.5]",
        "[1.0, 1.0]",
        "16.0 [0.0, 0.0]",
    ]


def test_both_operators_are_counted(runs):
    with_kernels, without = runs
    counted = {f"aten::{name}" for name in OPERATORS}
    assert counted.isdisjoint(with_kernels["fallbacks"])
    assert counted <= set(without["fallbacks"])
