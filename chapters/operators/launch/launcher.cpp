// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/common/differences.h"

#include <ATen/ops/empty.h>

#include <c10/core/InferenceMode.h>
#include <omp.h>

#include <cmath>
#include <memory>
#include <stdexcept>

namespace openreg {

// [operators.launcher.device.add] Tensors on different devices are refused before anything is enqueued.
void CommonDevice::add(const at::Tensor& tensor) {
  if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
  const c10::Device device = tensor.device();
  if (!device_ && device.type() == kDeviceType) device_ = device;
  if (device_ != device) mismatch_ = device;
}

c10::DeviceIndex CommonDevice::index() const {
  TORCH_CHECK(device_, name_, " needs at least one tensor on an openreg ",
              "device.");
  TORCH_CHECK(!mismatch_, name_,
              " needs all tensors on one openreg device, but found one on ",
              *device_, " and one on ", *mismatch_, "; move them with .to().");
  return device_->index();
}

void checkWritten(const char* name, const at::Tensor& written) {
  TORCH_CHECK(!written.defined() || written.device().type() == kDeviceType,
              name, " on an openreg device cannot write to a tensor on ",
              written.device(), "; move that tensor with .to().");
}

c10::DeviceIndex commonDevice(const char* name,
                              at::ArrayRef<at::Tensor> tensors) {
  CommonDevice device(name);
  for (const at::Tensor& tensor : tensors) device.add(tensor);
  return device.index();
}

// [operators.launcher.convert] Filling a CPU tensor on the host checks the value and throws the CPU's own error.
void checkConvertible(const at::Scalar& value, at::ScalarType dtype) {
  const bool is_usual = dtype == at::kFloat || dtype == at::kDouble ||
                        dtype == at::kHalf || dtype == at::kBFloat16;
  // The largest half.
  if (is_usual && !value.isComplex() && std::abs(value.toDouble()) <= 65504)
    return;
  if (dtype == kBComplex32) dtype = at::kComplexFloat;
  // Two elements: PyTorch fills a single one without this check.
  at::empty({2}, at::TensorOptions(dtype)).fill_(value);
}

// [operators.launcher.thread] Device threads record no gradients and print no warnings.
void prepareThread() {
  thread_local c10::InferenceMode mode;
  thread_local SilentWarningHandler silent;
  thread_local c10::WarningUtils::WarningHandlerGuard guard(&silent);
}

// [operators.launcher.run-kernel] A kernel launched in deterministic mode stays deterministic after the mode is switched off: its loops are not parallel.
namespace {

/// OpenMP keeps this number for each thread.
struct NoParallelLoops {
  int before = omp_get_max_threads();
  NoParallelLoops() { omp_set_num_threads(1); }
  NoParallelLoops(const NoParallelLoops&) = delete;
  ~NoParallelLoops() { omp_set_num_threads(before); }
};

}  // namespace

void runKernel(const Modes& modes, const std::function<void()>& body) {
  prepareThread();
  std::optional<NoParallelLoops> serial;
  if (modes.deterministic && !Modes().deterministic) serial.emplace();
  try {
    body();
  } catch (const c10::Error& error) {
    throw Refusal(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw Refusal(error.what());
  }
}

// [operators.launcher.wait] The host and the kernel share ownership of the error, because the wait may end early.
void runAndWait(const char* name, const c10::Stream& stream,
                std::function<void()> body) {
  auto error = std::make_shared<std::exception_ptr>();
  check(launch(nativeStream(stream), name, [error, body = std::move(body)] {
    prepareThread();
    try {
      body();
    } catch (...) {
      *error = std::current_exception();
    }
  }));
  stream.synchronize();
  if (*error) std::rethrow_exception(*error);
}

// [-]
}  // namespace openreg
