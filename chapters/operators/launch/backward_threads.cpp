// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/bindings.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

namespace openreg {
namespace {

// [operators.backward-threads] A thread of autograd that completes another pass has released the one before, and its Python objects.
void runBackwardPass(c10::DeviceIndex index) {
  const auto options = at::device({kDeviceType, index});
  const at::Tensor leaf = at::empty({1}, options).requires_grad_();
  torch::autograd::grad({leaf.view(-1)}, {leaf}, {at::empty({1}, options)});
}

void waitForBackwardThreads() {
  // On the calling thread, the pass itself would hold Python objects.
  std::thread([] {
    try {
      for (c10::DeviceIndex index = 0; index < deviceCount(); ++index)
        runBackwardPass(index);
    } catch (const std::exception&) {
      // The program has ended, so there is nowhere to report the error.
    }
  }).join();
}

/// Releases the GIL, because the backward threads need it.
const ChapterBindings end_bindings("operators", [](pybind11::module_& module) {
  module.def("wait_for_backward_threads", &waitForBackwardThreads,
             pybind11::call_guard<pybind11::gil_scoped_release>());
});

// [-]
}  // namespace
}  // namespace openreg
