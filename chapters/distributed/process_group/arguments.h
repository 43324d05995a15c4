// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicators/communicator.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <vector>

namespace openreg {

// [distributed.arguments.check] Wrong arguments are refused before the first rank enqueues anything.
/// @throws c10::ValueError unless all tensors of both lists are dense tensors
/// of one openreg device. Returns that device.
c10::DeviceIndex checkTensors(at::TensorList inputs, at::TensorList outputs);
/// @throws c10::ValueError unless `list` has `count` entries; `what` names it.
void checkCount(const char* what, size_t count, size_t expected);
/// @throws c10::TypeError unless both have the same dtype.
void checkSameType(const at::Tensor& input, const at::Tensor& output);
/// The same for the number of elements.
/// @throws c10::ValueError
void checkSameSize(const at::Tensor& input, const at::Tensor& output);

// [distributed.arguments.call] A collective on a tensor is described by the library's own struct.
/// The library's name of a dtype; orcclBytes if it has none.
orcclDataType_t dataTypeOf(const at::Tensor& tensor);

/// The call that moves a tensor of this dtype and size, or that reduces it if
/// there is a `reduction`.
/// @throws c10::TypeError for a dtype that cannot be reduced, c10::ValueError
/// for one that does not have this reduction.
orcclCall_t callOf(orcclFunc_t func, const at::Tensor& tensor,
                   const c10d::ReduceOp* reduction, int root);

/// The tensor that is to be summed for PREMUL_SUM: its product with the factor,
/// computed on the current stream. Otherwise `tensor`.
at::Tensor premultiplied(const at::Tensor& tensor,
                         const c10d::ReduceOp* reduction);

// [distributed.arguments.dense] The library moves bytes that lie one after the other, so other layouts go through a copy.
/// The elements of a tensor in the order of its indices, for work on the
/// current stream.
class Dense {
 public:
  /// What the library does with the elements.
  enum Use { kRead, kWrite };

  /// A copy is filled if the use is `kRead`.
  Dense(const at::Tensor& tensor, Use use);

  /// The device address of the first element.
  char* data() const { return static_cast<char*>(dense_.data_ptr()); }
  /// All elements, without gaps.
  size_t bytes() const { return dense_.nbytes(); }
  /// After the work is enqueued: copies back into the tensor, if need be.
  void writeBack() const;

 private:
  const at::Tensor tensor_, dense_;
};

// [-]
}  // namespace openreg
