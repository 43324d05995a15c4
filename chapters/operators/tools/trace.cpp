// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/tools/trace.h"
#include "chapters/device/runtime.h"
#include "chapters/operators/launch/argument.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace openreg {
namespace {

// [operators.trace.state] Threads of all kinds call operators, so the books have a lock.
std::mutex mutex;
std::map<std::string, Calls> calls;
at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;

// [operators.trace.call] One call, from its arguments to its results.
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
  // PyTorch records the steps of a backward pass too; they are no operators.
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
  // A factory is known by what it returns.
  if (!static_cast<const Call*>(context)->is_ours &&
      !anyOurs(function.outputs())) {
    return;
  }
  std::lock_guard lock(mutex);
  Calls& of_operator = calls[c10::toString(*function.operator_name())];
  ++(depth == 0 ? of_operator.direct : of_operator.inner);
}

// [-]
}  // namespace

// [operators.trace.start] PyTorch calls back at every operator that is dispatched, of every thread.
void startTrace() {
  stopTrace();
  std::lock_guard lock(mutex);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

std::map<std::string, Calls> stopTrace() {
  std::lock_guard lock(mutex);
  if (handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(handle);
  handle = at::INVALID_CALLBACK_HANDLE;
  return std::exchange(calls, {});
}

// [-]
}  // namespace openreg
