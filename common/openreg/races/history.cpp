// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/races/history.h"

#include <algorithm>
#include <iterator>

namespace openreg::hardware {
// [common.races.judge] Two uses race if one of them writes, they share bytes, and neither clock knows of the other.
static bool race(const Use& old, const Touch& touch, const Clock& clock) {
  return (old.what().is_write || touch.is_write) && !old.comesBefore(clock) &&
         !old.is_uncertain && !clock.is_uncertain &&
         overlap(old.what().bytes, touch.bytes);
}

static void addOnce(std::vector<Use>& uses, const Use& use) {
  const auto same = [&](const Use& each) { return each.launch == use.launch; };
  if (std::none_of(uses.begin(), uses.end(), same)) uses.push_back(use);
}

// [common.races.replace] An old use can be forgotten if whatever races with it races with the new one, too.
static bool replaces(const Use& use, const Clock& clock, const Use& old) {
  const Touch &after = use.what(), &before = old.what();
  return old.comesBefore(clock) && (after.is_write || !before.is_write) &&
         (after.bytes.isDense() || after.bytes == before.bytes);
}

/// Enough for a matrix of which columns are written one after the other. The
/// oldest is dropped, so that a race with it is missed.
constexpr size_t kMostUses = 256;

// [common.races.history.split] A use that touches a part of a segment splits it.
void History::splitAt(uintptr_t address) {
  auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return;
  auto segment = std::prev(after);
  if (segment->first == address || segment->second.end <= address) return;
  segments_.emplace_hint(after, address, segment->second);
  segment->second.end = address;
}

// [common.races.history.merge] After a use of a whole block, the block is one segment again.
void History::mergeWithin(uintptr_t begin, uintptr_t end) {
  // Each segment here has the new use, and so all have the same if it is alone.
  const auto is_alone = [](const Segment& one) { return one.uses.size() == 1; };
  auto segment = segments_.find(begin);
  for (auto next = std::next(segment);
       next != segments_.end() && next->first < end;) {
    if (is_alone(segment->second) && is_alone(next->second)) {
      segment->second.end = next->second.end;
      next = segments_.erase(next);
    } else {
      segment = next++;
    }
  }
}

// [common.races.history.add] The gaps between the segments are new ones.
std::vector<Use> History::add(const Use& use, const Clock& clock) {
  const auto [begin, end] =
      std::pair(use.what().bytes.begin, use.what().bytes.end);
  std::vector<Use> racing = find(use.what(), clock);
  splitAt(begin);
  splitAt(end);
  auto segment = segments_.lower_bound(begin);
  for (uintptr_t at = begin; at < end; ++segment) {
    if (segment == segments_.end() || segment->first > at) {
      const uintptr_t gap_end =
          segment == segments_.end() ? end : std::min(end, segment->first);
      segment = segments_.emplace_hint(segment, at, Segment{gap_end, {}});
    }
    std::vector<Use>& uses = segment->second.uses;
    std::erase_if(uses,
                  [&](const Use& old) { return replaces(use, clock, old); });
    if (uses.size() >= kMostUses) uses.erase(uses.begin());
    uses.push_back(use);
    at = segment->second.end;
  }
  mergeWithin(begin, end);
  return racing;
}

// [common.races.history.find] Segments that only touch the range are passed over.
std::vector<Use> History::find(const Touch& touch, const Clock& clock) const {
  std::vector<Use> racing;
  auto segment = segments_.upper_bound(touch.bytes.begin);
  if (segment != segments_.begin()) --segment;
  for (; segment != segments_.end() && segment->first < touch.bytes.end;
       ++segment) {
    if (segment->second.end <= touch.bytes.begin) continue;
    for (const Use& old : segment->second.uses) {
      if (race(old, touch, clock)) addOnce(racing, old);
    }
  }
  return racing;
}

void History::settle(uintptr_t begin, uintptr_t end, const Clock& clock) {
  splitAt(begin);
  splitAt(end);
  const auto is_over = [&](const Use& use) { return use.comesBefore(clock); };
  for (auto each = segments_.lower_bound(begin);
       each != segments_.end() && each->first < end; ++each)
    std::erase_if(each->second.uses, is_over);
}

void History::forget(uintptr_t begin, uintptr_t end) {
  splitAt(begin);
  splitAt(end);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
}

// [-]
}  // namespace openreg::hardware
