// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/signature.h"
#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

namespace openreg {

// [distributed.hosts.wide] A host's sum can overflow where the average of all ranks does not, so averages are built of wider numbers.
/// What a call reduces: copies in a wider type if it averages numbers of 8 or
/// 16 bits, otherwise the memory of the caller.
struct WideNumbers {
  /// Copies the inputs. All have `count` numbers of `call.type`.
  WideNumbers(orStream_t stream, int device, const Signature& call,
              void* output, std::span<const void* const> inputs, size_t count);
  /// Copies the result to the caller's `output`, if that is not null.
  void writeBack() const;

  Signature call;                   ///< the caller's, with the wider type
  void* output;                     ///< where the result goes
  std::vector<const void*> inputs;  ///< what is reduced

 private:
  const c10::Stream stream_;
  at::Tensor narrow_output_, wide_output_;
  std::vector<at::Tensor> wide_inputs_;
};

// [-]
}  // namespace openreg
