// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/tensors.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.prediction] PyTorch's Meta kernel predicts what an operator will return.
/// The results of `op` as meta tensors: sizes, strides and dtypes without data.
/// They are cached by everything that the Meta kernel can see of the arguments.
/// @throws what PyTorch throws for arguments that do not fit each other.
torch::jit::Stack predict(const c10::OperatorHandle& op,
                          const torch::jit::Stack& arguments);

// [common.meta-functions] Every structured operator has a C++ function that checks arguments and announces results.
/// A function of a structured operator that takes meta tensors, PyTorch's own.
struct MetaFunction {
  using Any = void (*)();                      ///< of one of many types
  Any function;                                ///< its type is known to `call`
  void (*call)(Any, torch::jit::Stack& both);  ///< arguments in, results out
};

/// That of `op`; null if `op` is not structured. The dispatcher would find a
/// slow one in Python in its place, with other errors.
const MetaFunction* metaFunction(const c10::OperatorHandle& op);

// [common.correction] Ten Meta kernels describe results that no device returns, five those of CUDA, six refuse what devices take, and three refuse because of CUDA.
/// Changes `results`, announced by the Meta kernel of `op`, into what the
/// operator returns on every device, or on every one but CUDA.
void correct(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
             torch::jit::Stack& results);

/// Changes the meta tensors of a call into ones that the Meta kernel of `op`
/// accepts, if the operator accepts the call.
void accept(const c10::OperatorHandle& op, torch::jit::Stack& arguments);

/// Whether, under `torch.use_deterministic_algorithms`, the Meta kernel of `op`
/// throws an error that applies to CUDA's kernel and not to the CPU's.
bool hasCudaOnlyAlert(const c10::OperatorHandle& op);

// [common.announcement] For the operators of most models we announce the common case ourselves, because PyTorch's Meta kernels for them are slow.
/// They are written in Python, and the first of them imports `torch._dynamo`,
/// which takes more than a second.
/// The results of `op` as its Meta kernel would announce them; empty if that
/// kernel has to be asked.
torch::jit::Stack announceInCpp(const c10::OperatorHandle& op,
                                const torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
