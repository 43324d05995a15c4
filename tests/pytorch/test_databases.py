# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's databases, asked with PyTorch's own decorators: the recipe on the page PyTorch's tests.

The class that tests devices from outside is `PrivateUse1TestBase`; PyTorch makes one from each class
below, with a test for every entry of a database.
"""

import contextlib
import copy
import unittest

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_device_type import (
    PrivateUse1TestBase,
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
)
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.custom_op_db import custom_op_db
from torch.testing._internal.opinfo.core import DecorateInfo
from torch_openreg.conformance_samples import mapped

# What PyTorch's entries expect and no device can give. A line that is no longer needed fails its test.
OVERRIDES = {
    # It writes into `x.cpu()`, which is a copy.
    "NumpyExpMarkDirtyAutogradFunction": [DecorateInfo(unittest.expectedFailure, "TestOperators")],
}
PrivateUse1TestBase.set_test_configs(op_overrides=OVERRIDES)
# Releases from 2.14 sort test classes by the hardware that they need.
HARDWARE = getattr(common_utils, "HardwareClassification", None)

FOREACH = [
    *foreach_unary_op_db,
    *foreach_binary_op_db,
    *foreach_pointwise_op_db,
    *foreach_reduce_op_db,
    *foreach_other_op_db,
]
STEPS = 3


def there(value, device):
    """The same arguments, with every tensor on the device."""

    def move(leaf):
        return leaf.detach().clone().to(device) if isinstance(leaf, torch.Tensor) else leaf

    return mapped(move, value)


class OfEveryAccelerator(common_utils.TestCase):
    hw_classification = HARDWARE and HARDWARE.ACCELERATOR


class TestOptimizers(OfEveryAccelerator):
    @optims(optim_db)
    def test_steps_are_those_of_the_cpu(self, device, dtype, optim_info):
        # These gradients are dense.
        refused = optim_info.only_supports_sparse_grads
        with self.assertRaises(RuntimeError) if refused else contextlib.nullcontext():
            self.compare(device, dtype, optim_info)

    def compare(self, device, dtype, optim_info):
        torch.manual_seed(0)
        # Without a bias, because Muon wants matrices.
        model = torch.nn.Linear(4, 3, bias=False, dtype=dtype)
        data = torch.randn(5, 4, dtype=dtype)
        for case in optim_info.optim_inputs_func(device=device):
            weights = []
            for place in ("cpu", device):
                twin, x = copy.deepcopy(model).to(place), data.to(place)
                optimizer = optim_info.optim_cls(twin.parameters(), **there(case.kwargs, place))

                def loss(twin=twin, x=x, optimizer=optimizer):
                    optimizer.zero_grad()
                    loss = twin(x).square().sum()
                    loss.backward()
                    return loss

                for _ in range(STEPS):
                    optimizer.step(loss)
                weights.append([weight.detach().cpu() for weight in twin.parameters()])
            self.assertEqual(weights[0], weights[1], msg=case.desc)


class TestOperators(OfEveryAccelerator):
    def compare(self, device, dtype, op):
        for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
            given = [sample.input, *sample.args], sample.kwargs
            (*here, kwargs), (*moved, theirs) = (
                (*there(given[0], place), there(given[1], place)) for place in ("cpu", device)
            )
            try:
                expected = op(*here, **kwargs)
            except RuntimeError as refusal:
                with self.assertRaises(type(refusal)):
                    op(*moved, **theirs)
            else:
                self.assertEqual(expected, there(op(*moved, **theirs), "cpu"))

    @ops(FOREACH, allowed_dtypes=[torch.float32])
    def test_a_list_of_tensors_is_computed_as_on_the_cpu(self, device, dtype, op):
        self.compare(device, dtype, op)

    @ops([*custom_op_db, *autograd_function_db], allowed_dtypes=[torch.float32])
    def test_an_operator_of_a_user_runs_on_the_device(self, device, dtype, op):
        self.compare(device, dtype, op)


for generic in (TestOptimizers, TestOperators):
    instantiate_device_type_tests(generic, globals(), only_for="openreg")
