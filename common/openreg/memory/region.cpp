// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/region.h"

#include <algorithm>
#include <utility>

namespace openreg::hardware {

// [common.region.free-list] A free block is always in both indexes. Their nodes are never freed, so no change of them can fail.
Region::Region(uintptr_t begin, size_t size, Release release,
               BlockLayout layout)
    : begin_(begin),
      size_(size),
      release_(std::move(release)),
      layout_(layout) {
  addSpare();
  addFree(begin, size);
}

void Region::addSpare() {
  const size_t all = free_.size() + spare_.size() + 1;
  if (spare_.capacity() < all) spare_.reserve(2 * all);
  ByPlace place{{0, 0}};
  BySize size{{0, 0}};
  spare_.push_back({place.extract(place.begin()), size.extract(size.begin())});
}

void Region::addFree(uintptr_t begin, size_t size) {
  auto [place, by_size] = std::move(spare_.back());
  spare_.pop_back();
  place.key() = begin;
  place.mapped() = size;
  by_size.value() = {size, begin};
  free_.insert(std::move(place));
  free_by_size_.insert(std::move(by_size));
  free_bytes_ += size;
}

void Region::removeFree(uintptr_t begin, size_t size) {
  spare_.push_back(
      {free_.extract(begin), free_by_size_.extract({size, begin})});
  free_bytes_ -= size;
}

size_t Region::freeBytes() const {
  std::lock_guard lock(mutex_);
  return free_bytes_;
}

// [common.region.allocate] The smallest block that fits is split, and the remainder stays free.
static size_t roundUp(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

size_t Region::reservedFor(size_t size) const {
  return roundUp(size, layout_.unit) + 2 * layout_.margin;
}

size_t Region::offsetOf(size_t size) const {
  return layout_.margin + roundUp(size, layout_.unit) -
         roundUp(size, layout_.alignment);
}

uintptr_t Region::allocate(size_t size) {
  if (size > size_) return 0;
  const size_t reserved = reservedFor(size);
  std::lock_guard lock(mutex_);
  auto fit = free_by_size_.lower_bound({reserved, 0});
  if (fit == free_by_size_.end()) return 0;
  const auto [free_size, begin] = *fit;
  // Both can fail, and leave the region as it was.
  if (spare_.size() <= used_blocks_) addSpare();
  blocks_.add({begin + offsetOf(size), size});
  ++used_blocks_;
  removeFree(begin, free_size);
  if (free_size > reserved) addFree(begin + reserved, free_size - reserved);
  return begin + offsetOf(size);
}

// [common.region.free] Free neighbors merge, and whole free pages return to the system.
void Region::free(uintptr_t block) {
  std::lock_guard lock(mutex_);
  const size_t size = blocks_.remove(block).size;
  --used_blocks_;
  const uintptr_t begin = block - offsetOf(size);
  const uintptr_t end = begin + reservedFor(size);

  uintptr_t free_begin = begin, free_end = end;
  auto after = free_.lower_bound(end);
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == begin) {
      free_begin = before->first;
      removeFree(before->first, before->second);
    }
  }
  after = free_.find(end);
  if (after != free_.end()) {
    free_end = end + after->second;
    removeFree(after->first, after->second);
  }
  addFree(free_begin, free_end - free_begin);

  // A page may hold two blocks: only pages without any other block go back.
  const Range touched = pagesOf({begin, end});
  const uintptr_t first =
      std::max(touched.begin, roundUp(free_begin, pageSize()));
  const uintptr_t last =
      std::min(touched.end, free_end / pageSize() * pageSize());
  if (first < last) release_(first, last - first);
}

// [-]
}  // namespace openreg::hardware
