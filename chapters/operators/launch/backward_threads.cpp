// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/backward_threads.h"
#include "torch_openreg/chapters/device/runtime.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

namespace openreg {

// [operators.backward-threads.wait] A thread that completes another pass has released the one before.
static void runBackwardPass(c10::DeviceIndex index) {
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

// [-]
}  // namespace openreg
