// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/compile/replays/results.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"

#include <algorithm>
#include <utility>

namespace openreg {
// [compile.replays.results.views] Two results may be views of the same memory, and stay so.
static at::Tensor over(c10::Storage storage, const at::Tensor& pattern) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), pattern.key_set(), pattern.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(
      pattern.sizes(), pattern.strides(), pattern.storage_offset());
  return view;
}

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
    memories_.push_back({tensor.storage(), {}});
  }
}

// [compile.replays.results.lend] A lent storage keeps the memory of the graph until its last holder is gone.
std::vector<at::Tensor> Results::lend() {
  using Kept = std::shared_ptr<c10::Storage>;
  std::vector<c10::Storage> storages;
  storages.reserve(memories_.size());
  for (Memory& memory : memories_) {
    const c10::Storage& own = memory.own;
    const auto kept = std::make_shared<c10::Storage>(own);
    memory.lent = kept;
    storages.emplace_back(
        c10::Storage::use_byte_size_t(), own.nbytes(),
        c10::DataPtr(
            own.mutable_data(), new Kept(kept),
            [](void* context) { delete static_cast<Kept*>(context); },
            own.device()),
        own.allocator(), true);
  }
  std::vector<at::Tensor> tensors;
  tensors.reserve(views_.size());
  for (const View& view : views_) {
    tensors.push_back(over(storages[view.memory], view.pattern));
  }
  return tensors;
}

// [compile.replays.results.in-use] A result without elements has no memory that a replay could overwrite.
bool Results::areInUse() const {
  return std::any_of(memories_.begin(), memories_.end(),
                     [](const Memory& memory) {
                       return memory.own.nbytes() && !memory.lent.expired();
                     });
}

// [compile.replays.results.wait] A dropped result is not freed, so the replay waits where the allocator would.
void Results::waitForReaders() {
  for (const Memory& memory : memories_) {
    const c10::DataPtr& data = memory.own.data_ptr();
    for (const c10::Stream& reader : takeRecordedStreams(data))
      waitForStream(currentStream(data.device().index()), reader);
  }
}

// [-]
}  // namespace openreg
