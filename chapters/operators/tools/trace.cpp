// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/record_function.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace openreg {
namespace {

// [operators.trace] The dispatcher counts which operators a program calls on our devices.
/// For each operator the calls by the program or a backward pass, and those by
/// other operators.
using Counts = std::map<std::string, std::pair<uint64_t, uint64_t>>;

/// Any thread may call operators, until the process ends, so a lock protects
/// the counts, and nothing destroys them.
std::mutex& counts_mutex = *new std::mutex;
Counts& counts = *new Counts;
at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;

// [operators.trace.call] A call is counted when it returns, because only the result of a factory has a device.
thread_local int depth = 0;

struct Call final : at::ObserverContext {
  bool is_ours = false;
};

bool anyOurs(c10::ArrayRef<c10::IValue> values) {
  const auto tensors = tensorsOf(values);
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.device().type() == kDeviceType;
  });
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  // PyTorch also reports the nodes of a backward pass, which are not operators.
  if (!function.operator_name()) return nullptr;
  auto call = std::make_unique<Call>();
  const auto inputs = function.inputs();
  call->is_ours =
      anyOurs(c10::ArrayRef<c10::IValue>(inputs.data(), inputs.size()));
  ++depth;
  return call;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (!context) return;
  --depth;
  // A factory takes no tensor of ours, but returns one.
  if (!static_cast<const Call*>(context)->is_ours &&
      !anyOurs(function.outputs())) {
    return;
  }
  std::lock_guard lock(counts_mutex);
  auto& [direct, inner] = counts[c10::toString(*function.operator_name())];
  ++(depth == 0 ? direct : inner);
}

// [operators.trace.start] The dispatcher calls the observer for every operator, on every thread. A second trace begins anew.
Counts stopTrace() {
  std::lock_guard lock(counts_mutex);
  if (handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(handle);
  handle = at::INVALID_CALLBACK_HANDLE;
  return std::exchange(counts, {});
}

void startTrace() {
  stopTrace();
  std::lock_guard lock(counts_mutex);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

const ChapterBindings trace_bindings("operators",
                                     [](pybind11::module_& module) {
                                       module.def("start_trace", &startTrace);
                                       module.def("stop_trace", &stopTrace);
                                     });

// [-]
}  // namespace
}  // namespace openreg
