// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/races/footprint.h"

#include <algorithm>
#include <vector>

namespace openreg::hardware {

// [common.races.footprint.merge] Sorted by their strides, the dimensions of most tensors merge into one run.
Footprint::Footprint(const orAccess& access)
    : begin(reinterpret_cast<uintptr_t>(access.pointer)),
      run(access.element_bytes) {
  std::vector<Repeat> all;
  for (int i = 0; i < access.dims; ++i) {
    const auto count = static_cast<uint64_t>(access.sizes[i]);
    const auto stride =
        static_cast<uint64_t>(access.strides[i]) * access.element_bytes;
    if (count == 0) run = 0;
    if (count > 1 && stride > 0) all.push_back({stride, count});
  }
  end = begin;
  if (run == 0) return;
  std::sort(all.begin(), all.end(), [](const Repeat& a, const Repeat& b) {
    return a.stride < b.stride;
  });
  end += run;
  bool fits = true;
  for (const auto& [stride, count] : all) {
    end += stride * (count - 1);
    if (dims == 0 && stride <= run) {
      run += stride * (count - 1);
    } else if (dims > 0 &&
               repeats[dims - 1].stride * repeats[dims - 1].count == stride) {
      repeats[dims - 1].count *= count;
    } else if (dims < kMostDims) {
      repeats[dims++] = {stride, count};
    } else {
      fits = false;
    }
  }
  if (fits) return;
  dims = 0;
  repeats = {};
  run = end - begin;
}

// [common.races.footprint.period] What repeats with a period lies, within each period, between two bounds.
/// How far the runs extend within one period of `period` bytes; those
/// dimensions whose stride is a multiple of it only repeat them.
static uint64_t extentWithin(const Footprint& bytes, uint64_t period) {
  uint64_t extent = bytes.run;
  for (size_t i = 0; i < bytes.dims; ++i) {
    const auto& [stride, count] = bytes.repeats[i];
    if (stride % period != 0) extent += stride * (count - 1);
  }
  return extent;
}

static bool areApart(const Footprint& one, const Footprint& other,
                     uint64_t period) {
  const uint64_t one_extent = extentWithin(one, period);
  const uint64_t other_extent = extentWithin(other, period);
  const uint64_t distance =
      (other.begin % period + period - one.begin % period) % period;
  return one_extent <= distance && distance + other_extent <= period;
}

// [common.races.footprint.overlap] One period in which they are apart is enough.
bool overlap(const Footprint& one, const Footprint& other) {
  if (one.begin >= other.end || other.begin >= one.end) return false;
  for (const Footprint* each : {&one, &other}) {
    for (size_t i = 0; i < each->dims; ++i) {
      if (areApart(one, other, each->repeats[i].stride)) return false;
    }
  }
  return true;
}

// [-]
}  // namespace openreg::hardware
