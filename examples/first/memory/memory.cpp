// SPDX-License-Identifier: BSD-3-Clause
#include "guard/guard.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace tiny {

// [first.memory.allocator] Each tensor gets a block of its own from the driver, and returns it when it ends.
struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    const orError_t error = orMalloc(&data, bytes);
    if (error == orErrorMemoryAllocation)
      TORCH_CHECK_WITH(OutOfMemoryError, false, orGetErrorDetail());
    check(error);
    return {data, data, &release, {kDevice, currentDevice()}};
  }
  // A destructor calls this, so it must not throw. The driver waits for all pending work first.
  static void release(void* data) { orFree(data); }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    check(orDeviceSynchronize());  // Another stream may still write what is copied.
    check(orMemcpy(to, from, bytes, orMemcpyDeviceToDevice));
  }
};

static auto& allocator = *new Allocator;
static const bool registered = (c10::SetAllocator(kDevice, &allocator), true);

// [first.memory.empty] Two factories make all tensors: one takes sizes, the other takes strides too.
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;

static at::Tensor empty(at::IntArrayRef size, Dtype dtype, Layout, Device device,
                        std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(kDevice));
  return at::detail::empty_generic(size, &allocator, kKeys, c10::dtype_or_default(dtype), format);
}

static at::Tensor emptyStrided(at::IntArrayRef size, at::IntArrayRef stride, Dtype dtype, Layout,
                               Device device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(kDevice));
  return at::detail::empty_strided_generic(size, stride, &allocator, kKeys,
                                           c10::dtype_or_default(dtype));
}

// [first.memory.register] The dispatcher's table: operator, key, function.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &emptyStrided);
}

// [-]
}  // namespace tiny
