# SPDX-License-Identifier: BSD-3-Clause
"""Open: an optimizer that lets the device decide whether a step is skipped, so that no step waits."""

import torch


class PatientSGD(torch.optim.SGD):
    # A scaler then sets `grad_scale` and `found_inf`, both on the device.
    _step_supports_amp_scaling = True

    @torch.no_grad()
    def step(self):
        raise NotImplementedError("Unscale, and change nothing where found_inf is not zero.")
