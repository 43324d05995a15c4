// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/graphs/random/captured_offsets.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/waiting.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <map>
#include <utility>

namespace openreg {

// [graphs.offsets.stream] The default stream is seldom part of a capture.
static c10::Stream uncapturedStream(c10::DeviceIndex device) {
  c10::Stream stream = defaultStream(device);
  for (int turn = 0; turn < 32 && isCaptured(stream); ++turn)
    stream = poolStream(device, 0);
  return stream;
}

// [graphs.offsets.reserve] A generator joins a capture when it is first used in it.
RandomRange CapturedOffsets::reserve(const std::shared_ptr<Counter>& counter,
                                     c10::DeviceIndex device, uint64_t count) {
  std::lock_guard lock(mutex_);
  auto base = std::find_if(bases_.begin(), bases_.end(), [&](const Base& each) {
    return each.counter == counter;
  });
  if (base == bases_.end()) {
    // The pool may give memory here that an earlier node of the graph writes.
    const c10::Stream stream = uncapturedStream(device);
    c10::StreamGuard outside(stream);
    bases_.push_back({counter, allocator().allocate(sizeof(RandomState))});
    base = std::prev(bases_.end());
    // What is enqueued there may still use the memory.
    base->free.emplace(kDeviceType).record(stream);
  }
  const uint64_t offset = std::exchange(base->count, base->count + count);
  return {{0, offset}, static_cast<const RandomState*>(base->memory.get())};
}

// [graphs.offsets.provide] A replay takes from the generator what eager kernels would have taken, so both draw the same numbers.
void CapturedOffsets::provide(const c10::Stream& stream) {
  std::lock_guard lock(mutex_);
  for (Base& base : bases_) {
    if (base.free) base.free->block(stream);
    base.free.reset();
    const RandomState state = base.counter->take(base.count);
    // The driver reads so few pageable bytes before it returns.
    check(orMemcpyAsync(base.memory.get(), &state, sizeof(state),
                        orMemcpyHostToDevice, nativeStream(stream)));
  }
}

void CapturedOffsets::clear(const std::vector<c10::Stream>& streams) {
  std::lock_guard lock(mutex_);
  for (const Base& base : bases_) {
    for (const c10::Stream& stream : streams) {
      allocator().recordStream(base.memory, stream);
    }
  }
  bases_.clear();
}

// [graphs.offsets.of] The driver's number of the capture leads from a stream to its graph.
namespace {

std::mutex offsets_mutex;
std::map<uint64_t, CapturedOffsets*>& offsetsByCapture() {
  static auto& offsets = *new std::map<uint64_t, CapturedOffsets*>;
  return offsets;
}

RandomRange reserveCaptured(const std::shared_ptr<Counter>& counter,
                            const c10::Stream& stream, uint64_t count) {
  uint64_t id = 0;
  check(orStreamGetCaptureId(nativeStream(stream), &id));
  CapturedOffsets* offsets = nullptr;
  {
    std::lock_guard lock(offsets_mutex);
    const auto found = offsetsByCapture().find(id);
    if (found != offsetsByCapture().end()) offsets = found->second;
  }
  TORCH_CHECK(offsets, "Capture ", id,
              " was begun with the driver, so PyTorch cannot give random "
              "numbers to its runs; capture with torch.accelerator.Graph.");
  return offsets->reserve(counter, stream.device_index(), count);
}

}  // namespace

void setOffsetsOf(uint64_t id, CapturedOffsets* offsets) {
  std::lock_guard lock(offsets_mutex);
  if (offsets) {
    offsetsByCapture()[id] = offsets;
  } else {
    offsetsByCapture().erase(id);
  }
}

// [graphs.offsets.register] From now on, generators ask us on streams that are captured.
static const bool offsets_registered = [] {
  onCapturedReserve(&reserveCaptured);
  return true;
}();

// [-]
}  // namespace openreg
