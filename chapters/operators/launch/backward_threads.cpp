// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/launch/backward_threads.h"
#include "chapters/device/runtime.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

namespace openreg {

// [operators.backward-threads.settle] A thread begins its next pass when it has let go of the last one.
static void passBackwardOn(c10::DeviceIndex index) {
  const auto options = at::device({kDeviceType, index});
  const at::Tensor leaf = at::empty({1}, options).requires_grad_();
  torch::autograd::grad({leaf.view(-1)}, {leaf}, {at::empty({1}, options)});
}

void settleBackwardThreads() {
  // On this thread the pass would hold something of Python's itself.
  std::thread([] {
    try {
      for (c10::DeviceIndex index = 0; index < deviceCount(); ++index)
        passBackwardOn(index);
    } catch (const std::exception&) {
      // The program has ended, and nobody is left to be told.
    }
  }).join();
}

// [-]
}  // namespace openreg
