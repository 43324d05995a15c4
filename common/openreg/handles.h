// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace openreg::hardware {

// [common.handles] A handle is a ticket, not an address: a stale one is told from a live one.
/// Objects that are recycled, never freed. A handle is a place and how often
/// the place was used before, so looking one up costs two loads and no lock,
/// and a destroyed or invented handle finds nothing.
template <class Object, class Handle>
class Handles {
 public:
  struct Ticket {
    Handle handle;
    Object* object;
  };

  Ticket create() {
    std::lock_guard lock(mutex_);
    uint64_t place;
    if (spare_.empty()) {
      place = ++places_;
      if (place / kChunk >= kChunks) return {nullptr, nullptr};
      auto& chunk = chunks_[place / kChunk];
      if (!chunk.load()) chunk.store(new std::array<Slot, kChunk>);
    } else {
      place = spare_.front();
      spare_.pop_front();
    }
    Slot& slot = *slotAt(place);
    const uint64_t use = slot.use.fetch_add(1) + 1;  // Odd: alive.
    return {reinterpret_cast<Handle>(use << kPlaceBits | place), &slot.object};
  }

  /// The object, or null if `handle` is not alive.
  Object* find(Handle handle) const {
    const auto ticket = reinterpret_cast<uint64_t>(handle);
    Slot* slot = slotAt(ticket & (kChunk * kChunks - 1));
    const uint64_t use = ticket >> kPlaceBits;
    return slot && (use & 1) && slot->use.load() == use ? &slot->object
                                                        : nullptr;
  }

  // [common.handles.retire] A handle dies when it is destroyed, its object when the work is done.
  /// Makes `handle` stale; whether it was alive.
  bool retire(Handle handle) {
    const auto ticket = reinterpret_cast<uint64_t>(handle);
    Slot* slot = slotAt(ticket & (kChunk * kChunks - 1));
    uint64_t use = ticket >> kPlaceBits;
    return slot && (use & 1) && slot->use.compare_exchange_strong(use, use + 1);
  }
  /// Gives the place of a retired handle to the next object.
  void recycle(Handle handle) {
    std::lock_guard lock(mutex_);
    spare_.push_back(reinterpret_cast<uint64_t>(handle) &
                     (kChunk * kChunks - 1));
  }

 private:
  static constexpr uint64_t kPlaceBits = 20, kChunk = 1024, kChunks = 1024;
  struct Slot {
    std::atomic<uint64_t> use{0};
    Object object;
  };

  Slot* slotAt(uint64_t place) const {
    auto* chunk = chunks_[place / kChunk].load();
    return chunk ? &(*chunk)[place % kChunk] : nullptr;
  }

  std::array<std::atomic<std::array<Slot, kChunk>*>, kChunks> chunks_{};
  std::mutex mutex_;
  std::deque<uint64_t> spare_;
  uint64_t places_ = 0;
};

// [-]
}  // namespace openreg::hardware
