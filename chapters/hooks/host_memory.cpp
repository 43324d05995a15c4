// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

namespace openreg {
namespace {

// [hooks.pinned.driver] PyTorch caches the blocks; the driver allocates them and tells when a stream is done with one.
class PinnedMemory
    : public at::CachingHostAllocatorImpl<c10::Stream, orEvent_t> {
  using Block = at::HostBlock<c10::Stream>;

 public:
  std::pair<void*, void*> allocate(size_t size) override {
    // A forked child has the cache, and its locks as another thread left them.
    NotForked();
    WithoutGil others_run;
    return CachingHostAllocatorImpl::allocate(size);
  }

  // [hooks.pinned.waits] PyTorch's cache holds its mutexes while the driver frees, so the GIL is released first.
  void free(void* block) override {
    WithoutGil others_run;
    CachingHostAllocatorImpl::free(block);
  }
  void empty_cache() override {
    NotForked();
    TORCH_CHECK(!isAnyPoolInUse(),
                "Emptying the cache of pinned memory waits for the device, and "
                "a graph is being captured; do it before the capture or after "
                "it.");
    WithoutGil others_run;
    CachingHostAllocatorImpl::empty_cache();
  }

  // [hooks.pinned.driver.calls] Six calls that PyTorch leaves to the driver.
 private:
  void allocate_host_memory(size_t size, void** pointer) override {
    check(orMallocHost(pointer, size));
  }
  void free_block(Block* block) override { orFreeHost(block->ptr_); }

  void record_stream(std::optional<std::vector<orEvent_t>>& events,
                     c10::Stream stream) override {
    events->push_back(eventIn(stream));
  }
  bool query_event(orEvent_t& event) override { return isReached(event); }
  c10::Stream get_current_stream() const override { return currentStream(-1); }
  bool stream_is_capturing(c10::Stream stream) const override {
    return isCaptured(stream);
  }
};

// [hooks.pinned.allocator] PyTorch's allocator interface, around the cache.
void deletePinned(void* block);

struct HostAllocator final
    : at::CachingHostAllocatorInterface<PinnedMemory, &deletePinned> {};

HostAllocator& instance() {
  static HostAllocator& instance = *new HostAllocator;
  return instance;
}

void deletePinned(void* block) {
  if (!orIsForked()) instance().free(block);
}

// [-]
}  // namespace

// [hooks.pinned.register] `pin_memory` asks the hooks, and `torch.accelerator.empty_host_cache` asks the registry.
at::HostAllocator& hostAllocator() { return instance(); }

REGISTER_HOST_ALLOCATOR(kDeviceType, &instance());

// [hooks.pinned.ask] The driver recognizes its own memory; before it has started, or where it cannot run, no memory is pinned.
bool isPinned(const void* pointer) {
  orPointerAttributes attributes;
  int is_started = 0;
  return orDeviceIsStarted(0, &is_started) == orSuccess && is_started &&
         orPointerGetAttributes(&attributes, pointer) == orSuccess &&
         attributes.type == orMemoryTypeHost;
}

// [-]
}  // namespace openreg
