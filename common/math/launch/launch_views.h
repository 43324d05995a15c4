// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/check.h"
#include "torch_openreg/common/math/launch/device_code.h"
#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/waiting.h"

#include <tuple>
#include <utility>

namespace openreg::math {

// [common.math.launch] A launch captures views of its tensors and the modes of its moment.
/// Enqueues `kernel(tensors...)` on `stream`. On the device the kernel gets CPU
/// tensors over the device's memory; it may write those that it takes by value.
/// `name` must outlive the launch; errors quote it.
template <class Kernel, class... Tensors>
void launchViews(const char* name, orStream_t stream, Kernel kernel,
                 const Tensors&... tensors) {
  WithoutGil others_run;  // A full queue makes the host wait.
  beginAccesses();
  size_t next = 0;
  constexpr auto accesses = accessesOfKernel<Kernel, sizeof...(Tensors)>();
  check(launch(stream, name,
               [kernel = std::move(kernel),
                views = std::tuple{View(tensors, accesses[next++])...},
                modes = Modes()] {
                 runKernel(modes, [&] {
                   std::apply(
                       [&](const auto&... view) { kernel(view.tensor()...); },
                       views);
                 });
               }));
}

// [-]
}  // namespace openreg::math
