// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.correction] Where a Meta kernel says another thing than the CPU's kernel does, ours must follow the kernel.
/// Changes `results`, which the Meta kernel of `op` announced, into what the
/// CPU's kernel returns for `arguments`.
void correct(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
             torch::jit::Stack& results);

/// Whether the Meta kernel of `op` refuses, under
/// `torch.use_deterministic_algorithms`, what CUDA's kernel cannot do and the
/// CPU's can.
bool alertsForCuda(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
