// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace openreg::hardware {

// [common.handles] A handle is a slot number and a generation, so a stale handle is detected.
/// Objects that are recycled and never freed. The generation of a slot grows
/// when its object is created and when it is recycled, and is odd in between.
/// A look-up costs two loads and no lock, and a recycled or invented handle
/// finds nothing. What a look-up finds may be destroyed and recycled by another
/// thread, so the object knows its handle and compares it under its own lock.
template <class Object, class Handle>
class HandleTable {
 public:
  struct Entry {
    Handle handle;
    Object* object;
  };

  /// @throws orErrorMemoryAllocation if no slot is left for one of `objects`.
  Entry create(const char* objects) {
    std::lock_guard lock(mutex_);
    uint64_t index = first_free_;
    if (index) {
      first_free_ = slotAt(index)->next_free;
    } else {
      index = slots_used_ + 1;
      if (index / kChunk >= kChunks) {
        throw fail(orErrorMemoryAllocation, "There are too many ", objects,
                   ": a machine has room for 2^20.");
      }
      auto& chunk = chunks_[index / kChunk];
      if (!chunk.load()) chunk.store(new std::array<Slot, kChunk>);
      slots_used_ = index;
    }
    Slot& slot = *slotAt(index);
    const uint64_t generation = slot.generation.fetch_add(1) + 1;
    return {reinterpret_cast<Handle>(generation << kIndexBits | index),
            &slot.object};
  }

  // [common.handles.find] A look-up compares the generation of the handle with that of the slot.
  /// The object whose handle was `handle` a moment ago, or null.
  Object* find(Handle handle) const {
    const auto [index, generation] = split(handle);
    Slot* slot = slotAt(index);
    return slot && (generation & 1) && slot->generation.load() == generation
               ? &slot->object
               : nullptr;
  }

  // [common.handles.recycle] A slot is recycled by the one thread that destroyed its object, when the work is done.
  /// Frees the slot of `handle`, to be used after the slots freed before it.
  void recycle(Handle handle) noexcept {
    const uint64_t index = split(handle).index;
    std::lock_guard lock(mutex_);
    Slot& slot = *slotAt(index);
    ++slot.generation;
    slot.next_free = 0;
    (first_free_ ? slotAt(last_free_)->next_free : first_free_) = index;
    last_free_ = index;
  }

  // [common.handles.state] Slots are in chunks that never move.
 private:
  static constexpr uint64_t kIndexBits = 20, kChunk = 1024, kChunks = 1024;
  struct Slot {
    std::atomic<uint64_t> generation{0};
    uint64_t next_free = 0;
    Object object;
  };
  struct Parts {
    uint64_t index, generation;
  };

  static Parts split(Handle handle) {
    const auto bits = reinterpret_cast<uint64_t>(handle);
    return {bits & (kChunk * kChunks - 1), bits >> kIndexBits};
  }
  Slot* slotAt(uint64_t index) const {
    auto* chunk = chunks_[index / kChunk].load();
    return chunk ? &(*chunk)[index % kChunk] : nullptr;
  }

  std::array<std::atomic<std::array<Slot, kChunk>*>, kChunks> chunks_{};
  std::mutex mutex_;
  /// Slots from 1 on were used; 0 means none.
  uint64_t slots_used_ = 0, first_free_ = 0, last_free_ = 0;
};

// [-]
}  // namespace openreg::hardware
