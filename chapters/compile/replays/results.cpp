// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/compile/replays/results.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

namespace openreg {
namespace {

// [compile.replays.results.views] Two results may be views of the same memory, and stay so.
at::Tensor over(c10::Storage storage, const at::Tensor& pattern) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), pattern.key_set(), pattern.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(
      pattern.sizes(), pattern.strides(), pattern.storage_offset());
  return view;
}

// [-]
}  // namespace

// [compile.replays.results.memory] The graph's own storages are never handed out, so resizing a result does not free what a replay writes.
Results::Results(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    const auto found = std::find_if(
        memories_.begin(), memories_.end(), [&](const Memory& memory) {
          return memory.own.is_alias_of(tensor.storage());
        });
    views_.push_back({over(tensor.storage(), tensor),
                      static_cast<size_t>(found - memories_.begin())});
    if (found != memories_.end()) continue;
    memories_.push_back(
        {tensor.storage(), c10::Storage().getWeakStorageImpl()});
  }
}

// [compile.replays.results.lend] A lent storage keeps the memory of the graph, and its weak pointer expires when the last tensor that uses it is gone.
std::vector<at::Tensor> Results::lend() {
  std::vector<c10::Storage> storages;
  storages.reserve(memories_.size());
  for (Memory& memory : memories_) {
    const c10::Storage& own = memory.own;
    storages.emplace_back(
        c10::Storage::use_byte_size_t(), own.nbytes(),
        c10::DataPtr(
            own.mutable_data(), new c10::Storage(own),
            [](void* kept) { delete static_cast<c10::Storage*>(kept); },
            own.device()),
        own.allocator(), true);
    memory.lent = storages.back().getWeakStorageImpl();
  }
  std::vector<at::Tensor> tensors;
  tensors.reserve(views_.size());
  for (const View& view : views_) {
    tensors.push_back(over(storages[view.memory], view.pattern));
  }
  return tensors;
}

// [compile.replays.results.in-use] A result without elements has no memory that a replay could overwrite.
c10::intrusive_ptr<c10::StorageImpl> Results::Memory::inUse() const {
  auto storage = lent.lock();
  const bool is_here =
      storage && storage->data() && storage->data() == own.data();
  return is_here ? storage : nullptr;
}

bool Results::areInUse() const {
  return std::any_of(
      memories_.begin(), memories_.end(),
      [](const Memory& each) { return each.inUse() != nullptr; });
}

// [compile.replays.results.keep] All tensors over a storage find their data through it, so exchanging its memory moves them all.
bool Results::keepThoseInUse() {
  bool found = false;
  const c10::Stream here = currentStream(-1);
  for (Memory& memory : memories_) {
    for (const auto& other : takeRecordedStreams(memory.own.data_ptr()))
      waitForStream(here, other);
    const auto lent = memory.inUse();
    if (!lent) continue;
    const auto size = static_cast<int64_t>(lent->nbytes());
    at::Tensor copy = at::empty(
        {size}, at::TensorOptions(at::kByte).device(memory.own.device()));
    copy.copy_(over(memory.own, copy));
    lent->set_data_ptr(copy.storage().unsafeGetStorageImpl()->set_data_ptr({}));
    found = true;
  }
  if (found) {
    for (const auto& other : streamsInUse(here.device_index()))
      waitForStream(here, other);
  }
  return found;
}

// [-]
}  // namespace openreg
