// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.correction] Three Meta kernels describe results that no device returns, one refuses what devices take, and three refuse because of CUDA.
/// Changes `results`, announced by the Meta kernel of `op`, into what the
/// operator returns on every device.
void correct(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
             torch::jit::Stack& results);

/// Changes the meta tensors of a call into ones that the Meta kernel of `op`
/// accepts, if the operator accepts the call.
void accept(const c10::OperatorHandle& op, torch::jit::Stack& arguments);

/// Whether, under `torch.use_deterministic_algorithms`, the Meta kernel of `op`
/// throws an error that applies to CUDA's kernel and not to the CPU's.
bool hasCudaOnlyAlert(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
