// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/memory/memory_events.h"
#include "torch_openreg/chapters/hooks/host_memory.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <string_view>

namespace openreg {
// [profiler.races.host] An operator on the host touches its tensors at once, so those in pinned memory must not be in a copy.
static bool isPinned(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.has_storage() &&
         openreg::isPinned(tensor.const_data_ptr());
}

/// An argument's tensors: itself, or those of the list that it is.
static c10::ArrayRef<c10::IValue> partsOf(const c10::IValue& argument) {
  if (argument.isList()) return argument.toListRef();
  return argument;
}

/// Neither operators that only look at sizes, nor those that enqueue a copy.
static bool touchesNothing(std::string_view name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_") ||
         name.ends_with("_like") || name.starts_with("aten::resize") ||
         name == "aten::_to_copy" || name == "aten::set_" ||
         name == "aten::is_pinned" || name == "aten::record_stream";
}

// [profiler.races.host.operator] Views are known by their schema, and copies by a tensor that is on a device.
static std::unique_ptr<at::ObserverContext> onOperator(
    const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  bool any_pinned = false;
  for (const c10::IValue& input : inputs) {
    for (const c10::IValue& part : partsOf(input)) {
      if (!part.isTensor() || !part.toTensor().defined()) continue;
      if (!part.toTensor().is_cpu()) return nullptr;
      any_pinned = any_pinned || isPinned(part.toTensor());
    }
  }
  if (!any_pinned) return nullptr;
  const auto name = function.operator_name();
  if (!name || touchesNothing(name->name)) return nullptr;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) return nullptr;
  const auto& schema = op->schema();
  for (const auto& result : schema.returns()) {
    if (result.alias_info() && !result.alias_info()->isWrite()) return nullptr;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    for (const c10::IValue& part : partsOf(inputs[i])) {
      if (!part.isTensor() || !isPinned(part.toTensor())) continue;
      const at::Tensor& tensor = part.toTensor();
      const orAccess access{tensor.const_data_ptr(),
                            static_cast<size_t>(tensor.element_size()),
                            static_cast<int>(tensor.dim()),
                            tensor.sizes().data(),
                            tensor.strides().data(),
                            alias && alias->isWrite()};
      orAnnounceHostAccess(name->name.c_str(), &access);
    }
  }
  return nullptr;
}

static std::mutex callback_mutex;
static at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;

// [profiler.races.host.blocks] Tensors that are there already have blocks, too, and a kernel may have nothing but a pointer to one.
static void announceBlocksInUse() {
  for (const auto& segment : memorySnapshot()) {
    size_t address = segment.address;
    for (const auto& block : segment.blocks) {
      if (block.active)
        orAnnounceBlock(reinterpret_cast<const void*>(address), block.size);
      address += block.size;
    }
  }
}

// [profiler.races.host.start] PyTorch calls us before each operator, and the allocator at each block, while races are wanted.
void startHostAccesses() {
  std::lock_guard lock(callback_mutex);
  if (callback != at::INVALID_CALLBACK_HANDLE) return;
  onHandOut(
      [](const void* data, size_t bytes) { orAnnounceBlock(data, bytes); });
  announceBlocksInUse();
  callback = at::addGlobalCallback(at::RecordFunctionCallback(&onOperator)
                                       .needsInputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
}

void stopHostAccesses() {
  if (orIsForked()) return;  // The lock may have been locked at the fork.
  std::lock_guard lock(callback_mutex);
  if (callback == at::INVALID_CALLBACK_HANDLE) return;
  onHandOut(nullptr);
  at::removeCallback(callback);
  callback = at::INVALID_CALLBACK_HANDLE;
}

// [-]
}  // namespace openreg
