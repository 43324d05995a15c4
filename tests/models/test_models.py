# SPDX-License-Identifier: BSD-3-Clause
"""Models of libraries that people install: trained a step and used, as on the CPU."""

import csv
from pathlib import Path

import count
import pytest
import torch
import torchmetrics
import torchmetrics.image
from programs import MODELS, make, to, train
from torch_openreg.calls import LARGE, judge, read

CALLS = Path(__file__).with_name("calls.jsonl")


#: In float32, its gradients and losses differ between one and two threads of the CPU by more than is allowed here.
UNSTABLE = "efficientnet"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_a_model_learns_what_it_learns_on_the_cpu(name):
    model, given = make(name)
    if name == UNSTABLE:
        model = model.double()
        given = {n: x.double() if x.is_floating_point() else x for n, x in given.items()}
    expected_losses, expected = train(model, given, "cpu")
    torch.openreg.reset_fallback_report()
    losses, gradients = train(model, given, "openreg")
    assert torch.openreg.fallback_report() == {}
    torch.testing.assert_close(losses, expected_losses, rtol=1e-4, atol=1e-6)
    # Some gradients are zero but for the rounding of larger ones.
    largest = max(gradient.abs().max() for gradient in expected.values()).item()
    torch.testing.assert_close(gradients, expected, rtol=1e-3, atol=1e-5 * largest)


def test_the_table_has_the_kernels_that_the_models_need():
    with count.TABLE.open() as table:
        listed = {name: int(models) for name, models, _ in [*csv.reader(table)][1:]}
    # The calls are fewer in a process that has rehearsed some of them before.
    assert listed == {name: models for name, models, _ in count.rows()}


def test_the_recorded_calls_are_right():
    """Of up to 65,536 elements; without `--quick`, the command asks the others too."""
    calls = [call for call in read(CALLS) if call.elements() <= LARGE]
    assert len(calls) > 225
    found = {(call.name, *judge(call, "openreg")) for call in calls}
    assert {answer for answer in found if answer[1] != "right"} == set()


@pytest.mark.parametrize("name", ["llama", "mixtral", "gpt2", "mamba", "t5", "whisper"])
@pytest.mark.filterwarnings("ignore")
def test_a_model_writes_what_it_writes_on_the_cpu(name):
    """Word by word, with the keys and values of the words before in a cache."""
    model, given = make(name)
    start = {key: value for key, value in given.items() if key != "labels"}
    options = {"max_new_tokens": 8, "do_sample": False, "use_cache": True, "pad_token_id": 0}
    expected = model.generate(**start, **options)
    torch.openreg.reset_fallback_report()
    written = model.to("openreg").generate(**to("openreg", start), **options)
    assert torch.openreg.fallback_report() == {}
    assert torch.equal(written.cpu(), expected)


METRICS = {
    "accuracy": (lambda: torchmetrics.Accuracy("multiclass", num_classes=5), "classes"),
    "f1": (lambda: torchmetrics.F1Score("multiclass", num_classes=5, average="macro"), "classes"),
    "confusion": (lambda: torchmetrics.ConfusionMatrix("multiclass", num_classes=5), "classes"),
    "auroc": (lambda: torchmetrics.AUROC("multiclass", num_classes=5), "classes"),
    "calibration": (lambda: torchmetrics.CalibrationError("multiclass", num_classes=5), "classes"),
    "mean squared error": (torchmetrics.MeanSquaredError, "numbers"),
    "pearson": (torchmetrics.PearsonCorrCoef, "numbers"),
    "spearman": (torchmetrics.SpearmanCorrCoef, "numbers"),
    "r2": (torchmetrics.R2Score, "numbers"),
    "signal to noise": (
        lambda: torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0),
        "images",
    ),
    "similarity": (torchmetrics.image.StructuralSimilarityIndexMeasure, "images"),
}
PAIRS = {
    "classes": lambda: (torch.rand(20, 5).softmax(1), torch.randint(5, (20,))),
    "numbers": lambda: (torch.randn(20), torch.randn(20)),
    "images": lambda: (torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16)),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.filterwarnings("ignore")
def test_a_metric_measures_what_it_measures_on_the_cpu(name):
    make_metric, kind = METRICS[name]
    torch.manual_seed(0)
    batches = [PAIRS[kind]() for _ in range(3)]
    results = {}
    for device in ("cpu", "openreg"):
        metric = make_metric().to(device)
        torch.openreg.reset_fallback_report()
        for predicted, target in batches:
            metric.update(predicted.to(device), target.to(device))
        results[device] = metric.compute().cpu()
        assert torch.openreg.fallback_report() == {}
    torch.testing.assert_close(results["openreg"], results["cpu"])
