// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.announcement] For the operators of most models we announce the common case ourselves, because PyTorch's Meta kernels for them are slow.
/// They are written in Python, and the first of them imports `torch._dynamo`,
/// which takes more than a second.
/// The results of `op` as its Meta kernel would announce them; empty if that
/// kernel has to be asked.
torch::jit::Stack announceInCpp(const c10::OperatorHandle& op,
                                const torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
