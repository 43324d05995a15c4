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
c10::Stream uncapturedStream(c10::DeviceIndex device) {
  c10::Stream stream = defaultStream(device);
  for (int turn = 0; turn < 32 && isCaptured(stream); ++turn)
    stream = poolStream(device, 0);
  return stream;
}

// [graphs.offsets.bases] A state that was got in a capture names its base by number, for as long as a graph has it.
static std::mutex bases_mutex;
static std::map<uint64_t, std::weak_ptr<RandomBase>>& basesByNumber() {
  static auto& bases = *new std::map<uint64_t, std::weak_ptr<RandomBase>>;
  return bases;
}

static std::shared_ptr<RandomBase> newBase() {
  auto base = std::make_shared<RandomBase>();
  static uint64_t last = 0;
  std::lock_guard lock(bases_mutex);
  std::erase_if(basesByNumber(),
                [](auto& each) { return each.second.expired(); });
  basesByNumber()[base->number = ++last] = base;
  return base;
}

// [graphs.offsets.latest] Outside of a capture, such a state is where the latest replay was.
static std::shared_ptr<RandomBase> baseOf(uint64_t number) {
  std::lock_guard lock(bases_mutex);
  const auto found = basesByNumber().find(number);
  auto base = found == basesByNumber().end() ? nullptr : found->second.lock();
  TORCH_CHECK_VALUE(base, "This state of a generator was got while a graph ",
                    "was captured, and no such graph exists any more.");
  return base;
}

static RandomState latestOf(const RandomBase& base, uint64_t offset) {
  std::lock_guard lock(bases_mutex);
  TORCH_CHECK(base.latest, "This state of a generator was got while a graph ",
              "was captured, and the graph has not been replayed yet; replay ",
              "it first.");
  return {base.latest->seed, base.latest->offset + offset};
}

// [graphs.offsets.join] A generator joins a capture when it is first used in it.
CapturedOffsets::Used& CapturedOffsets::join(
    const std::shared_ptr<Counter>& counter, c10::DeviceIndex device) {
  const auto found =
      std::find_if(generators_.begin(), generators_.end(),
                   [&](const Used& each) { return each.counter == counter; });
  if (found != generators_.end()) return *found;
  auto base = newBase();
  const RandomRange at{{}, base->number, cellOf(base, device)};
  return generators_.emplace_back(counter, std::move(base), at);
}

RandomRange CapturedOffsets::move(const std::shared_ptr<Counter>& counter,
                                  c10::DeviceIndex device, RandomMove move) {
  std::lock_guard lock(mutex_);
  Used& used = join(counter, device);
  RandomRange to = used.at;
  move(to);
  to.base = to.number ? cellOf(baseOf(to.number), device) : nullptr;
  return std::exchange(used.at, to);
}

// [graphs.offsets.cell] The base of another graph gets a cell of this graph, because a replay of the other graph may come before the kernels that read it.
const RandomState* CapturedOffsets::cellOf(
    const std::shared_ptr<RandomBase>& base, c10::DeviceIndex device) {
  auto cell = std::find_if(cells_.begin(), cells_.end(),
                           [&](const Cell& each) { return each.base == base; });
  if (cell == cells_.end()) {
    // The pool may give memory here that an earlier node of the graph writes.
    const c10::Stream stream = uncapturedStream(device);
    c10::StreamGuard outside(stream);
    cell = cells_.insert(cell,
                         {base, allocator().allocate(sizeof(RandomState)), {}});
    // What is enqueued there may still use the memory.
    cell->free.emplace(kDeviceType).record(stream);
  }
  return static_cast<const RandomState*>(cell->memory.get());
}

void CapturedOffsets::write(Cell& cell, const c10::Stream& stream) {
  if (cell.free) cell.free->block(stream);
  cell.free.reset();
  const RandomState state = latestOf(*cell.base, 0);
  // The driver reads so few pageable bytes before it returns.
  check(orMemcpyAsync(cell.memory.get(), &state, sizeof(state),
                      orMemcpyHostToDevice, nativeStream(stream)));
}

// [graphs.offsets.provide] A replay moves the generator as eager kernels would have, so both draw the same numbers.
void CapturedOffsets::provide(const c10::Stream& stream) {
  std::lock_guard lock(mutex_);
  for (const Cell& cell : cells_) {
    const bool is_own =
        std::any_of(generators_.begin(), generators_.end(),
                    [&](const Used& used) { return used.base == cell.base; });
    if (!is_own) latestOf(*cell.base, 0);  // Refused before anything moves.
  }
  for (Used& used : generators_) {
    const bool is_after_base = used.at.number == used.base->number;
    const RandomState state =
        used.counter->take(is_after_base ? used.at.state.offset : 0);
    std::lock_guard bases_lock(bases_mutex);
    used.base->latest = state;
  }
  for (Cell& cell : cells_) write(cell, stream);
  for (Used& used : generators_) {
    const RandomRange& at = used.at;
    if (at.number == used.base->number) continue;
    used.counter->set(at.number ? latestOf(*baseOf(at.number), at.state.offset)
                                : at.state);
  }
}

void CapturedOffsets::clear(const std::vector<c10::Stream>& streams) {
  std::lock_guard lock(mutex_);
  generators_.clear();
  for (const Cell& cell : cells_) {
    for (const c10::Stream& stream : streams) {
      allocator().recordStream(cell.memory, stream);
    }
  }
  cells_.clear();
}

// [graphs.offsets.of] The driver's number of the capture leads from a stream to its graph.
static std::mutex offsets_mutex;
static std::map<uint64_t, CapturedOffsets*>& offsetsByCapture() {
  static auto& offsets = *new std::map<uint64_t, CapturedOffsets*>;
  return offsets;
}

static RandomRange moveCaptured(const std::shared_ptr<Counter>& counter,
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

void setOffsetsOf(uint64_t id, CapturedOffsets* offsets) {
  std::lock_guard lock(offsets_mutex);
  if (offsets) {
    offsetsByCapture()[id] = offsets;
  } else {
    offsetsByCapture().erase(id);
  }
}

// [graphs.offsets.register] From here on, a generator that draws on a captured stream calls these functions.
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
