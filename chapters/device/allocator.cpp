// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/allocator.h"
#include "chapters/device/cache.h"
#include "common/error.h"

#include <array>

namespace openreg {

// [device.allocator.caches] One cache for each device, never destroyed.
static Cache& cacheOf(c10::DeviceIndex index) {
  static auto& caches = *new std::array<Cache, kMaxDevices>;
  return caches[resolveDevice(index)];
}

static void deleteBlock(void* context) {
  auto* block = static_cast<Block*>(context);
  cacheOf(block->stream.device_index()).free(block);
}

// [device.allocator.interface] What PyTorch sees of it.
class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = currentDevice();
    const c10::Device device(kDeviceType, index);
    if (bytes == 0) return {nullptr, device};
    Block* block = cacheOf(index).allocate(bytes, currentStream(index));
    return {block->data, block, &deleteBlock, device};
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    check(orMemcpyAsync(to, from, bytes, orMemcpyDeviceToDevice,
                        nativeStream(currentStream(-1))));
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (!data.get()) return;
    TORCH_CHECK_VALUE(data.get_deleter() == &deleteBlock, data.get(),
                      " was not allocated by openreg's allocator, so no stream "
                      "can be recorded for it.");
    nativeStream(stream);  // Refuses streams of other devices.
    cacheOf(data.device().index())
        .recordStream(static_cast<Block*>(data.get_context()), stream);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
      cacheOf(index).empty();
    }
  }

  // [device.allocator.interface.stats] Statistics, by device.
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex index) override {
    return cacheOf(index).stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    cacheOf(index).resetAccumulatedStats();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    cacheOf(index).resetPeakStats();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    DeviceScope scope(index);
    std::pair<size_t, size_t> free_and_total;
    check(orMemGetInfo(&free_and_total.first, &free_and_total.second));
    return free_and_total;
  }
};

// [device.allocator.register] It outlives every tensor, so it is never destroyed.
c10::DeviceAllocator& allocator() {
  static Allocator& allocator = *new Allocator;
  return allocator;
}

REGISTER_ALLOCATOR(kDeviceType, &allocator());

// [-]
}  // namespace openreg
