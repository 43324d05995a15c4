// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/memory_events.h"

#include <atomic>

namespace openreg {

// [device.memory-events.tell] Without a listener, a change costs a load and a branch more.
static constinit std::atomic<void (*)(const MemoryEvent&)> memory_listener{
    nullptr};
static constinit std::atomic<void (*)(const void*, size_t)> hand_out_listener{
    nullptr};

void onMemoryEvent(void (*listen)(const MemoryEvent&)) {
  memory_listener = listen;
}

void onHandOut(void (*tell)(const void*, size_t)) { hand_out_listener = tell; }

void tellOfMemory(const MemoryEvent& event) {
  if (const auto listen = memory_listener.load(std::memory_order_relaxed)) {
    listen(event);
  }
}

void tellOfMemory(MemoryEvent::Action action, const Block* block, size_t size) {
  const auto tell = hand_out_listener.load(std::memory_order_relaxed);
  if (tell && action == MemoryEvent::Action::ALLOC)
    tell(block->data, block->size);
  if (!memory_listener.load(std::memory_order_relaxed)) return;
  tellOfMemory({action, block->stream.device_index(), block->data, size,
                block->stream.id()});
}

// [-]
}  // namespace openreg
