// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/launch.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/mul_ops.h>
#include <torch/library.h>

namespace tiny {

// [first.kernels.elementwise] The loop runs on the device, on addresses that only the device can follow.
template <class Function>
void elementwise(const char* name, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out,
                 Function function) {
  for (const at::Tensor& input : {a, b}) at::assert_no_partial_overlap(out, input);
  launch(out, name,
         [function, n = out.numel(), x = a.const_data_ptr<float>(), y = b.const_data_ptr<float>(),
          z = out.data_ptr<float>()] {
           const float* left = openreg::onDevice(x);
           const float* right = openreg::onDevice(y);
           float* result = openreg::onDevice(z);
           for (int64_t i = 0; i < n; ++i) result[i] = function(left[i], right[i]);
         });
}

static bool havePlainShape(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  return isPlain(a) && isPlain(b) && isPlain(out) && a.sizes() == b.sizes() &&
         a.sizes() == out.sizes() && a.device() == b.device() && a.device() == out.device();
}

// [first.kernels.add] The kernel takes the case that it knows, and hands every other to the fallback.
static at::Tensor& addOut(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha,
                          at::Tensor& out) {
  if (!havePlainShape(a, b, out))
    return at::native::call_fallback_fn<&fallback, at::_ops::add_out>::call(a, b, alpha, out);
  elementwise("add", a, b, out,
              [scale = alpha.to<float>()](float x, float y) { return x + scale * y; });
  return out;
}

static at::Tensor& mulOut(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  if (!havePlainShape(a, b, out))
    return at::native::call_fallback_fn<&fallback, at::_ops::mul_out>::call(a, b, out);
  elementwise("mul", a, b, out, [](float x, float y) { return x * y; });
  return out;
}

// [first.kernels.fill] ones, zeros and full end at fill_, so this kernel starts most tensors.
static at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  if (!isPlain(self))
    return at::native::call_fallback_fn<&fallback, at::_ops::fill__Scalar>::call(self, value);
  launch(self, "fill",
         [n = self.numel(), data = self.data_ptr<float>(), number = value.to<float>()] {
           std::fill_n(openreg::onDevice(data), n, number);
         });
  return self;
}

// [first.kernels.register] From `add.out`, PyTorch derives add, add_ and the + of Python.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.out", &addOut);
  m.impl("mul.out", &mulOut);
  m.impl("fill_.Scalar", &fill);
  m.impl("zero_", [](at::Tensor& self) -> at::Tensor& { return fill(self, 0); });
  m.impl("record_stream", [](at::Tensor&, c10::Stream) {});  // orFree waits for every stream.
}

// [-]
}  // namespace tiny
