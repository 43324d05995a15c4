// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/math/checks/outputs.h"
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/common/math/launch/device_code.h"
#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>

#include <concepts>
#include <optional>
#include <tuple>
#include <utility>

namespace openreg {

// [operators.launcher.device] All tensors of an operator must be on one device.
/// Undefined tensors and host tensors without dimensions do not count.
class CommonDevice {
 public:
  /// `name` is the operator's, for the error.
  explicit CommonDevice(const char* name) : name_(name) {}
  /// Never throws; `index` does.
  void add(const at::Tensor& tensor);
  /// @throws c10::Error that names the operator if the tensors are on several
  /// devices, or none is on one of ours.
  c10::DeviceIndex index() const;

 private:
  const char* name_;
  std::optional<c10::Device> device_;
  std::optional<c10::Device> mismatch_;
};

/// The device of all tensors of the list; throws as `CommonDevice::index`.
c10::DeviceIndex commonDevice(const char* name,
                              at::ArrayRef<at::Tensor> tensors);

/// The same, of the arguments.
template <std::same_as<at::Tensor>... Tensors>
c10::DeviceIndex commonDevice(const char* name, const Tensors&... tensors) {
  CommonDevice device(name);
  (device.add(tensors), ...);
  return device.index();
}

// [operators.launcher] Before a launch, the host refuses what no kernel could do.
/// @throws what the CPU throws if `dtype` cannot represent `value`.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype);

// [operators.launcher.launch] The launch of a kernel checks its tensors and captures views of them.

/// Enqueues `kernel(tensors...)` on the current stream of the tensors' device.
/// On the device the kernel gets CPU tensors over the device's memory. The
/// first tensor is an output, so it must not be on the host. `name` must
/// outlive the launch; errors quote it.
template <class Kernel, class... Tensors>
void launchKernel(const char* name, Kernel kernel, const Tensors&... tensors) {
  const c10::DeviceIndex index = commonDevice(name, tensors...);
  checkWritten(name, std::get<0>(std::tie(tensors...)));
  WithoutGil others_run;  // A full queue makes the host wait.
  check(launch(nativeStream(currentStream(index)), name,
               [kernel = std::move(kernel),
                views = std::make_tuple(View(tensors)...), modes = Modes()] {
                 runKernel(modes, [&] {
                   std::apply(
                       [&](const auto&... view) { kernel(view.tensor()...); },
                       views);
                 });
               }));
}

// [operators.launcher.rehearsed] A kernel that does not accept all dtypes first runs on the host, over zeros.
/// `launchKernel` for a kernel that does not accept all dtypes. For each new
/// combination of dtypes, the kernel first runs on the host, over zeros.
template <class Kernel, class... Tensors>
void launchRehearsed(const char* name, Kernel kernel,
                     const Tensors&... tensors) {
  thread_local PassedKeys passed;
  size_t key = 0;
  ((key = followedBy(key, keyOf(tensors))), ...);
  if (!passed.find(key)) {
    const bool small =
        isSmall(((tensors.defined() ? tensors.numel() : 0) + ...));
    const auto stand_in = [&](const at::Tensor& tensor) {
      return tensor.defined()
                 ? makeStandIn(tensor, tensor.scalar_type(), 0, small)
                 : tensor;
    };
    if (passesOnHost([&] { kernel(stand_in(tensors)...); }))
      passed.insert(key, {});
  }
  launchKernel(name, std::move(kernel), tensors...);
}

// [-]
}  // namespace openreg
