// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <torch/library.h>

namespace openreg {
namespace {

using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pin = std::optional<bool>;

// [operators.factories] The host can compute the number of indices, so these factories need no synchronization.
using Make = at::Tensor (*)(int64_t, int64_t, int64_t, at::TensorOptions);

at::Tensor indices(const char* name, Make make, int64_t row, int64_t col,
                   int64_t offset, int64_t count, Dtype dtype, Device device) {
  const at::TensorOptions options(dtype.value_or(at::kLong));
  make(0, 0, 0, options);  // Refuses a wrong dtype, on the host.
  at::Tensor out = at::empty({2, count}, options.device(device));
  launchKernel(
      name,
      [=](at::Tensor out) { out.copy_(make(row, col, offset, out.options())); },
      out);
  return out;
}

at::Tensor trilIndices(int64_t row, int64_t col, int64_t offset, Dtype dtype,
                       Layout layout, Device device, Pin) {
  at::native::check_args(row, col, layout);
  return indices("tril_indices", &at::tril_indices, row, col, offset,
                 at::native::get_tril_size(row, col, offset), dtype, device);
}

at::Tensor triuIndices(int64_t row, int64_t col, int64_t offset, Dtype dtype,
                       Layout layout, Device device, Pin) {
  at::native::check_args(row, col, layout);
  return indices("triu_indices", &at::triu_indices, row, col, offset,
                 row * col - at::native::get_tril_size(row, col, offset - 1),
                 dtype, device);
}

// [operators.factories.register] These two are not composed of `empty` and an operator that fills, so they need kernels.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("tril_indices", &trilIndices);
  m.impl("triu_indices", &triuIndices);
}

// [-]
}  // namespace
}  // namespace openreg
