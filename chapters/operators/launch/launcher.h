// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/operators/launch/view.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/waiting.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <functional>
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

// [operators.launcher] A kernel is a function of CPU tensors; the launcher does the rest.
/// @throws what the CPU throws if `dtype` cannot represent `value`.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype);

/// A kernel gets a host tensor by value, so it cannot write to one.
/// @throws c10::Error if `written` is on the host.
void checkWritten(const char* name, const at::Tensor& written);

/// Ignores all warnings.
struct SilentWarningHandler final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Prepares a thread of the device for PyTorch's kernels, once: turns autograd
/// off, and warnings too, because they could name no line of the program.
void prepareThread();

// [operators.launcher.modes] A launch captures the modes that PyTorch's kernels read from the process when they run.
/// The program may change a mode before the kernel runs. PyTorch keeps one
/// value for all threads, so a kernel cannot set it back for itself alone.
struct Modes {
  /// For new floating-point tensors.
  at::ScalarType default_dtype = c10::get_default_dtype_as_scalartype();
  /// `torch.use_deterministic_algorithms`.
  bool deterministic = at::globalContext().deterministicAlgorithms();
};

// [operators.launcher.run] A kernel that throws has refused its own result, and the device goes on.
/// Prepares the calling thread of the device and runs `body` on it. An error of
/// PyTorch's keeps its message and loses its backtrace, which would show the
/// device's thread and not the caller.
/// @throws Refusal for every `std::exception`.
void runKernel(const Modes& modes, const std::function<void()>& body);

/// Enqueues `body` on `stream` and waits for it.
/// @throws what `body` throws; the device does not stop.
void runAndWait(const char* name, const c10::Stream& stream,
                std::function<void()> body);

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

// [-]
}  // namespace openreg
