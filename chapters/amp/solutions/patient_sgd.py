# SPDX-License-Identifier: BSD-3-Clause
"""Open: an optimizer that lets the device decide whether a step is skipped, so that no step waits."""

import torch


class PatientSGD(torch.optim.SGD):
    """Plain gradient descent. A scaler gives it `grad_scale` and `found_inf`, both on the device."""

    _step_supports_amp_scaling = True

    @torch.no_grad()
    def step(self):
        scale, found_inf = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        for group in self.param_groups:
            for parameter in group["params"]:
                step = parameter.grad
                if step is None:
                    continue
                if scale is not None:  # None if the user has unscaled already
                    step = step / scale
                if found_inf is not None:
                    step = torch.where(found_inf != 0, 0.0, step)
                parameter.add_(step, alpha=-group["lr"])
