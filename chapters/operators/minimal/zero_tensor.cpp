// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/operators/minimal/layouts.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

namespace openreg {
namespace {

using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pin = std::optional<bool>;

// [operators.factories.zero] Zeros without memory, which autograd uses for gradients that are zero whatever the input.
at::Tensor efficientZeroTensor(at::IntArrayRef size,
                               std::optional<at::ScalarType> dtype, Layout,
                               Device device, Pin) {
  refuseOtherLayouts();
  at::native::ZeroTensorAllocator allocator(
      {kDeviceType, resolveDevice(device ? device->index() : -1)});
  return at::detail::empty_generic(
      size, &allocator,
      c10::DispatchKeySet(
          {c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor}),
      c10::dtype_or_default(dtype), std::nullopt);
}

// [operators.factories.zero.register] It needs no kernel, so it is the same for every device.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_efficientzerotensor", &efficientZeroTensor);
}

// [-]
}  // namespace
}  // namespace openreg
