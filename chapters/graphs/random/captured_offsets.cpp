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

// [graphs.offsets.bases] A state that was got in a capture names its base by number, for as long as a graph has it.
namespace {

std::mutex bases_mutex;
std::map<uint64_t, std::weak_ptr<RandomBase>>& basesByNumber() {
  static auto& bases = *new std::map<uint64_t, std::weak_ptr<RandomBase>>;
  return bases;
}

std::shared_ptr<RandomBase> newBase(c10::DeviceIndex device) {
  // The pool may give memory here that an earlier node of the graph writes.
  const c10::Stream stream = uncapturedStream(device);
  c10::StreamGuard outside(stream);
  auto base = std::make_shared<RandomBase>(
      RandomBase{0, allocator().allocate(sizeof(RandomState))});
  // What is enqueued there may still use the memory.
  base->free.emplace(kDeviceType).record(stream);
  static uint64_t last = 0;
  std::lock_guard lock(bases_mutex);
  std::erase_if(basesByNumber(),
                [](auto& each) { return each.second.expired(); });
  basesByNumber()[base->number = ++last] = base;
  return base;
}

// [graphs.offsets.latest] Outside of a capture, such a state is where the latest replay was.
std::shared_ptr<RandomBase> baseOf(uint64_t number) {
  std::lock_guard lock(bases_mutex);
  const auto found = basesByNumber().find(number);
  auto base = found == basesByNumber().end() ? nullptr : found->second.lock();
  TORCH_CHECK_VALUE(base, "This state of a generator was got while a graph ",
                    "was captured, and no such graph exists any more.");
  return base;
}

RandomState latestOf(const RandomBase& base, uint64_t offset) {
  std::lock_guard lock(bases_mutex);
  TORCH_CHECK(base.latest, "This state of a generator was got while a graph ",
              "was captured, and the graph has not been replayed yet; replay ",
              "it first.");
  return {base.latest->seed, base.latest->offset + offset};
}

}  // namespace

// [graphs.offsets.join] A generator joins a capture when it is first used in it.
CapturedOffsets::Used& CapturedOffsets::join(
    const std::shared_ptr<Counter>& counter, c10::DeviceIndex device) {
  const auto found =
      std::find_if(generators_.begin(), generators_.end(),
                   [&](const Used& each) { return each.counter == counter; });
  if (found != generators_.end()) return *found;
  auto base = newBase(device);
  const RandomRange at{{}, base->number, base->address()};
  return generators_.emplace_back(counter, std::move(base), at);
}

RandomRange CapturedOffsets::move(const std::shared_ptr<Counter>& counter,
                                  c10::DeviceIndex device, RandomMove move) {
  std::lock_guard lock(mutex_);
  Used& used = join(counter, device);
  RandomRange to = used.at;
  move(to);
  to.base = to.number ? addressOf(to.number) : nullptr;
  return std::exchange(used.at, to);
}

// [graphs.offsets.borrow] A state of another graph's capture means the numbers of that graph's latest replay.
const RandomState* CapturedOffsets::addressOf(uint64_t number) {
  for (const Used& each : generators_) {
    if (each.base->number == number) return each.base->address();
  }
  return borrowed_.emplace_back(baseOf(number))->address();
}

// [graphs.offsets.provide] A replay moves the generator as eager kernels would have, so both draw the same numbers.
void CapturedOffsets::provide(const c10::Stream& stream) {
  std::lock_guard lock(mutex_);
  for (const auto& base : borrowed_) latestOf(*base, 0);
  for (Used& used : generators_) {
    RandomBase& base = *used.base;
    if (base.free) base.free->block(stream);
    base.free.reset();
    const bool is_after_base = used.at.number == base.number;
    const RandomState state =
        used.counter->take(is_after_base ? used.at.state.offset : 0);
    // The driver reads so few pageable bytes before it returns.
    check(orMemcpyAsync(base.memory.get(), &state, sizeof(state),
                        orMemcpyHostToDevice, nativeStream(stream)));
    std::lock_guard bases_lock(bases_mutex);
    base.latest = state;
  }
  for (Used& used : generators_) {
    const RandomRange& at = used.at;
    if (at.number == used.base->number) continue;
    used.counter->set(at.number ? latestOf(*baseOf(at.number), at.state.offset)
                                : at.state);
  }
}

void CapturedOffsets::clear(const std::vector<c10::Stream>& streams) {
  std::lock_guard lock(mutex_);
  for (Used& used : generators_) borrowed_.push_back(std::move(used.base));
  generators_.clear();
  for (const auto& base : borrowed_) {
    for (const c10::Stream& stream : streams) {
      allocator().recordStream(base->memory, stream);
    }
  }
  borrowed_.clear();
}

// [graphs.offsets.of] The driver's number of the capture leads from a stream to its graph.
namespace {

std::mutex offsets_mutex;
std::map<uint64_t, CapturedOffsets*>& offsetsByCapture() {
  static auto& offsets = *new std::map<uint64_t, CapturedOffsets*>;
  return offsets;
}

RandomRange moveCaptured(const std::shared_ptr<Counter>& counter,
                         const c10::Stream& stream, RandomMove move) {
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
  return offsets->move(counter, stream.device_index(), move);
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
  static constexpr CapturedRandom functions{
      &moveCaptured, [](const RandomRange& range) {
        return latestOf(*baseOf(range.number), range.state.offset);
      }};
  setCapturedRandom(&functions);
  return true;
}();

// [-]
}  // namespace openreg
