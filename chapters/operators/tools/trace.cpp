// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/tools/trace.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace openreg {
namespace {

// [operators.trace.state] Any thread may call operators, so a lock protects the counts.
std::mutex calls_mutex;
std::map<std::string, Calls> calls;
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
  std::lock_guard lock(calls_mutex);
  Calls& of_operator = calls[c10::toString(*function.operator_name())];
  ++(depth == 0 ? of_operator.direct : of_operator.inner);
}

// [-]
}  // namespace

// [operators.trace.start] The dispatcher calls the observer for every operator, on every thread.
void startTrace() {
  stopTrace();
  std::lock_guard lock(calls_mutex);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

std::map<std::string, Calls> stopTrace() {
  std::lock_guard lock(calls_mutex);
  if (handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(handle);
  handle = at::INVALID_CALLBACK_HANDLE;
  return std::exchange(calls, {});
}

// [-]
}  // namespace openreg
