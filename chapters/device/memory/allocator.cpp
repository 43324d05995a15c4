// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/memory/cache.h"
#include "torch_openreg/chapters/device/memory/memory_events.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <array>
#include <cstdint>

namespace openreg {

// [device.allocator.caches] One cache for each device, never destroyed.
/// Refuses a forked child: another thread of the parent may have held the lock.
static Cache& cacheOf(c10::DeviceIndex index) {
  NotForked();
  static auto& caches = *new std::array<Cache, kMaxDevices>;
  return caches[index];
}

// [device.allocator.profiler] The profiler records each change, and draws a program's memory from it.
/// Reports a change of `bytes` bytes at `data`; a null `data` reports that
/// memory ran out.
static void tellProfiler(void* data, int64_t bytes, c10::Device device) {
  if (!c10::memoryProfilingEnabled()) return;
  const auto stats = cacheOf(device.index()).stats();
  const size_t allocated = stats.allocated_bytes[0].current;
  const size_t reserved = stats.reserved_bytes[0].current;
  if (data) {
    c10::reportMemoryUsageToProfiler(data, bytes, allocated, reserved, device);
  } else {
    c10::reportOutOfMemoryToProfiler(bytes, allocated, reserved, device);
  }
}

// [device.allocator.delete] A tensor may be dropped on any thread.
static void deleteBlock(void* context) {
  // The memory belongs to the parent, where another thread may hold the lock.
  if (orIsForked()) return;
  auto* block = static_cast<Block*>(context);
  const c10::Device device = block->stream.device();
  void* data = block->data;
  const auto size = static_cast<int64_t>(block->size);
  cacheOf(device.index()).free(block);
  tellProfiler(data, -size, device);
}

/// The block that `data` is in; null if the memory is not of `cache`.
static Block* blockOf(const c10::DataPtr& data, Cache& cache) {
  return data.get_deleter() == &deleteBlock
             ? static_cast<Block*>(data.get_context())
             : cache.find(data.get());
}

// [device.allocator.interface] The interface that PyTorch allocates through.
class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = currentDevice();
    const c10::Device device(kDeviceType, index);
    if (bytes == 0) return {nullptr, device};
    TORCH_CHECK_VALUE(bytes <= PTRDIFF_MAX, "No memory has ", bytes,
                      " bytes; with a sign this is ",
                      static_cast<ptrdiff_t>(bytes),
                      ", but a size is 0 or more.");
    Block* block;
    try {
      block = cacheOf(index).allocate(bytes, currentStream(index));
    } catch (const c10::OutOfMemoryError&) {
      tellProfiler(nullptr, static_cast<int64_t>(bytes), device);
      tellOfMemory({MemoryEvent::Action::OOM, index, nullptr, bytes,
                    currentStream(index).id()});
      throw;
    }
    tellProfiler(block->data, static_cast<int64_t>(block->size), device);
    return {block->data, block, &deleteBlock, device};
  }

  // [device.allocator.interface.streams] Copies run on the current stream, and a block records the other streams that use it.
  void copy_data(void* to, const void* from, size_t bytes) const override {
    WithoutGil others_run;
    check(orMemcpyAsync(to, from, bytes, orMemcpyDeviceToDevice,
                        currentNativeStream(-1)));
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (!data.get()) return;
    checkStream(stream);
    Cache& cache = cacheOf(data.device().index());
    if (Block* block = blockOf(data, cache))
      return cache.recordStream(block, stream);
    // Memory from elsewhere goes back to the driver, which waits for all
    // streams.
    orPointerAttributes where;
    check(orPointerGetAttributes(&where, data.get()));
    TORCH_CHECK_VALUE(where.type == orMemoryTypeDevice, data.get(),
                      " was not allocated on an openreg device, so no stream "
                      "can be recorded for it.");
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
      const DeviceScope scope(index);
      cacheOf(index).empty();
    }
  }

  // [device.allocator.interface.stats] Statistics, by device.
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex index) override {
    return cacheOf(resolveDevice(index)).stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    cacheOf(resolveDevice(index)).resetAccumulatedStats();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    cacheOf(resolveDevice(index)).resetPeakStats();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    DeviceScope scope(index);
    std::pair<size_t, size_t> free_and_total;
    check(orMemGetInfo(&free_and_total.first, &free_and_total.second));
    return free_and_total;
  }
};

// [device.allocator.register] The allocator outlives every tensor, so it is never destroyed.
c10::DeviceAllocator& allocator() {
  static Allocator& allocator = *new Allocator;
  return allocator;
}

REGISTER_ALLOCATOR(kDeviceType, &allocator());

// [device.allocator.pools] Each device has its own share of a pool, but a captured stream may use memory of any device.
void beginPool(c10::DeviceIndex index, c10::MempoolId_t id,
               std::function<bool(c10::Stream)> claims) {
  cacheOf(index).beginPool(id, std::move(claims));
}

void endPool(c10::DeviceIndex index, c10::MempoolId_t id) {
  cacheOf(index).endPool(id);
  for (c10::DeviceIndex other = 0; other < deviceCount(); ++other) {
    if (other != index) cacheOf(other).retireCaptured();
  }
}

bool isAnyPoolInUse() { return Cache::isAnyPoolInUse(); }

void releasePool(c10::DeviceIndex index, c10::MempoolId_t id,
                 const std::vector<c10::Stream>& streams) {
  cacheOf(index).releasePool(id, streams);
}

std::vector<c10::Stream> takeRecordedStreams(const c10::DataPtr& data) {
  if (!data.get()) return {};
  Cache& cache = cacheOf(data.device().index());
  Block* block = blockOf(data, cache);
  return block ? cache.takeRecordedStreams(block) : std::vector<c10::Stream>{};
}

// [device.allocator.snapshot] The segments of all devices in one list.
std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot() {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> all;
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    for (auto& segment : cacheOf(index).snapshot()) {
      all.push_back(std::move(segment));
    }
  }
  return all;
}

// [-]
}  // namespace openreg
