# SPDX-License-Identifier: BSD-3-Clause
"""SyncBatchNorm's operators, against BatchNorm on the CPU over the parts in one batch."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import spawn_threads_and_init_comms
from torch.testing._internal.distributed.multi_threaded_pg import ProcessLocalGroup

FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def parts_of(shapes, dtype, layout):
    torch.manual_seed(0)
    parts = [torch.randn(shape, dtype=torch.float64) * 2 + 3 for shape in shapes]
    return [x.to(dtype).contiguous(memory_format=layout) for x in parts]


def forward(parts, weight, bias, running, eps=1e-5, momentum=0.3):
    """What SyncBatchNorm does on every process, for all processes here."""
    statistics = [torch.batch_norm_stats(x, eps) for x in parts]
    means, inverses = (torch.stack(x) for x in zip(*statistics))
    counts = torch.tensor([x.numel() / x.size(1) for x in parts]).to(means)
    mean, inverse = torch.batch_norm_gather_stats_with_counts(
        parts[0], means, inverses, *running, momentum, eps, counts
    )
    outputs = [torch.batch_norm_elemt(x, weight, bias, mean, inverse, eps) for x in parts]
    return outputs, (mean, inverse, counts.int())


def backward(parts, grads, weight, mean, inverse, counts):
    reduced = [
        torch.batch_norm_backward_reduce(grad, x, mean, inverse, weight, True, True, True)
        for grad, x in zip(grads, parts)
    ]
    sums, products, of_weight, of_bias = (torch.stack(x).sum(0) for x in zip(*reduced))
    if weight is not None:
        weight = weight.to(mean.dtype)
    of_inputs = [
        torch.batch_norm_backward_elemt(grad, x, mean, inverse, weight, sums, products, counts)
        for grad, x in zip(grads, parts)
    ]
    return of_inputs, of_weight, of_bias


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shapes, layout", [
    ([(4, 3), (2, 3)], torch.contiguous_format),
    ([(4, 3, 5), (2, 3, 5), (1, 3, 7)], torch.contiguous_format),
    ([(2, 3, 5, 4), (3, 3, 5, 4)], torch.channels_last),
])  # fmt: skip
def test_the_parts_are_normalized_as_one_batch(shapes, layout, affine, dtype):
    parts = parts_of(shapes, dtype, layout)
    norm = torch.nn.BatchNorm1d(3, momentum=0.3, affine=affine).double()
    if affine:
        torch.nn.init.normal_(norm.weight), torch.nn.init.normal_(norm.bias)
    rows = [x.double().transpose(0, 1).flatten(1).t() for x in parts]
    batch = torch.cat(rows).requires_grad_()
    weight, bias, *running = (
        None if x is None else x.detach().to("openreg", torch.promote_types(dtype, torch.float32))
        for x in (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    )
    grads = [torch.randn(x.shape).to(dtype).contiguous(memory_format=layout) for x in parts]
    expected = norm(batch)
    expected.backward(torch.cat([g.double().transpose(0, 1).flatten(1).t() for g in grads]))

    here = [x.to("openreg") for x in parts]
    with torch.openreg.fallback("error"):
        outputs, saved = forward(here, weight, bias, running)
        of_inputs, of_weight, of_bias = backward(
            here, [g.to("openreg") for g in grads], weight, *saved
        )
    for found, wanted in ((outputs, expected), (of_inputs, batch.grad)):
        assert all(x.dtype == dtype and x.stride() == p.stride() for x, p in zip(found, parts))
        found = torch.cat([x.cpu().transpose(0, 1).flatten(1).t() for x in found])
        torch.testing.assert_close(found, wanted.to(dtype))
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype.itemsize == 2 else {}
    pairs = [*zip(running, (norm.running_mean, norm.running_var))]
    if affine:
        pairs += [(of_weight, norm.weight.grad), (of_bias, norm.bias.grad)]
    for found, wanted in pairs:
        torch.testing.assert_close(found.cpu(), wanted.to(found.dtype), **near)


def test_gradients_that_nobody_wants_are_undefined():
    x = torch.randn(4, 3).to("openreg")
    mean, inverse = torch.batch_norm_stats(x, 1e-5)
    reduce = torch.batch_norm_backward_reduce
    assert reduce(x, x, mean, inverse, None, False, False, True)[:3] == (None, None, None)


def test_statistics_that_do_not_fit_are_refused():
    x = torch.randn(4, 3).to("openreg")
    row = x[0]
    for name, call in {
        "stats": lambda: torch.batch_norm_stats(row, 1e-5),
        "elemt": lambda: torch.batch_norm_elemt(row, None, None, row, row, 1e-5),
        "backward_reduce": lambda: torch.batch_norm_backward_reduce(
            row, row, row, row, None, True, True, True
        ),
        "backward_elemt": lambda: torch.batch_norm_backward_elemt(
            row, row, row, row, None, row, row, row.int()
        ),
    }.items():
        told = rf"batch_norm_{name} needs \(batch, channels, \.\.\.\) of"
        with pytest.raises(RuntimeError, match=told):
            call()
    with pytest.raises(RuntimeError, match="and a count for each process; it got"):
        torch.batch_norm_gather_stats_with_counts(x, x, x, None, None, 0.1, 1e-5, x[0])


def test_the_module_agrees_over_two_processes(monkeypatch):
    """Two threads play the processes, and run their backward passes themselves."""
    # Like gloo, their group gathers lists of tensors, and not into one tensor.
    monkeypatch.setattr(ProcessLocalGroup, "_get_backend_name", lambda self: "gloo", raising=False)
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(3)
    torch.nn.init.normal_(norm.weight)
    batch = torch.randn(5, 3, 4, 4)
    sync = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(norm))
    results = {}

    @spawn_threads_and_init_comms(world_size=2)
    def run(_):
        rank = dist.get_rank()
        module = copy.deepcopy(sync).to("openreg")
        part = batch[2 * rank : 2 + 3 * rank].to("openreg").requires_grad_()
        with torch.autograd.set_multithreading_enabled(False):
            output = module(part)
            output.square().sum().backward()
        results[rank] = (output.detach().cpu(), part.grad.cpu(), module.cpu())

    run(None)
    batch.requires_grad_()
    expected = norm(batch)
    expected.square().sum().backward()
    outputs, gradients, modules = zip(*(results[rank] for rank in range(2)))
    torch.testing.assert_close(torch.cat(outputs), expected.detach())
    torch.testing.assert_close(torch.cat(gradients), batch.grad, rtol=1e-4, atol=1e-5)
    of_weights = sum(module.weight.grad for module in modules)
    torch.testing.assert_close(of_weights, norm.weight.grad, rtol=1e-4, atol=1e-4)
    for module in modules:
        torch.testing.assert_close(module.running_var, norm.running_var)
