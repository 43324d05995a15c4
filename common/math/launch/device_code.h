// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/check.h"
#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/waiting.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>

#include <functional>
#include <tuple>
#include <utility>

namespace openreg {

// [common.device-code] A kernel is a function of CPU tensors that runs on a thread of the device.
/// Ignores all warnings.
struct SilentWarningHandler final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// Prepares a thread of the device for PyTorch's kernels, once: turns autograd
/// off, and warnings too, because they could name no line of the program.
void prepareThread();

// [common.device-code.modes] A launch captures the modes that PyTorch's kernels read from the process when they run.
/// The program may change a mode before the kernel runs. PyTorch keeps one
/// value for all threads, so a kernel cannot set it back for itself alone.
struct Modes {
  /// For new floating-point tensors.
  at::ScalarType default_dtype = c10::get_default_dtype_as_scalartype();
  /// `torch.use_deterministic_algorithms`.
  bool deterministic = at::globalContext().deterministicAlgorithms();
};

// [common.device-code.run] A kernel that throws has refused its own result, and the device goes on.
/// Prepares the calling thread of the device and runs `body` on it. An error of
/// PyTorch's keeps its message and loses its backtrace, which would show the
/// device's thread and not the caller.
/// Its loops may use other threads once its tensors are large.
/// @throws Refusal for every `std::exception`.
void runKernel(const Modes& modes, const std::function<void()>& body);

/// Enqueues `body` on `stream` and waits for it. `name` must outlive the call.
/// Warns as `body` does.
/// @throws what `body` throws; the device does not stop.
void runAndWait(const char* name, orStream_t stream,
                std::function<void()> body);

}  // namespace openreg

namespace openreg::math {

// [common.math.launch.view] The views are made where the launch keeps them, because moving one takes as long as making it.
/// A view for a kernel that has this access.
template <Access access>
struct ViewFor : View {
  /// Announces the access, as `View` does.
  explicit ViewFor(const at::Tensor& tensor) : View(tensor, access) {}
};

// [common.math.launch] A launch captures views of its tensors and the modes of its moment.
/// Enqueues `kernel(tensors...)` on `stream`. On the device the kernel gets CPU
/// tensors over the device's memory; it may write those that it takes by value.
/// `name` must outlive the launch; errors quote it.
template <class Kernel, class... Tensors>
void launchViews(const char* name, orStream_t stream, Kernel kernel,
                 const Tensors&... tensors) {
  WithoutGil others_run;  // A full queue makes the host wait.
  beginAccesses();
  constexpr auto accesses = accessesOfKernel<Kernel, sizeof...(Tensors)>();
  [&]<size_t... i>(std::index_sequence<i...>) {
    check(launch(stream, name,
                 [kernel = std::move(kernel),
                  views = std::tuple<ViewFor<accesses[i]>...>(tensors...),
                  modes = Modes()] {
                   runKernel(modes, [&] {
                     std::apply(
                         [&](const auto&... view) { kernel(view.tensor()...); },
                         views);
                   });
                 }));
  }
  (std::index_sequence_for<Tensors...>());
}

// [-]
}  // namespace openreg::math
