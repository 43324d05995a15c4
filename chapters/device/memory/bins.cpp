// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/bins.h"

#include <algorithm>
#include <bit>

namespace openreg {

// [device.size-class.round] From 4 KiB on, rounding wastes at most a ninth.
size_t sizeClass(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return bytes;  // No device has it: do not overflow.
  const size_t step = std::max<size_t>(512, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) & ~(step - 1);  // a step is a power of two
}

// [device.size-class.number] The highest bit and the three bits below it give the class its number.
static size_t classNumber(size_t size) {
  if (size < 4096) return size / 512;
  const int highest = std::bit_width(size) - 1;
  return (highest - 11) * 8 + (size >> (highest - 3) & 7);
}

// [device.bins.add] The block that was freed last is used first, because its bytes may still be in the processor's cache.
void Bins::add(Block* block) {
  const size_t number = classNumber(block->size);
  block->previous = nullptr;
  block->next = first_[number];
  if (block->next) block->next->previous = block;
  first_[number] = block;
  occupied_[number / 64] |= uint64_t{1} << number % 64;
}

void Bins::remove(Block* block) {
  if (block->next) block->next->previous = block->previous;
  if (block->previous) {
    block->previous->next = block->next;
    return;
  }
  const size_t number = classNumber(block->size);
  first_[number] = block->next;
  if (!block->next) occupied_[number / 64] &= ~(uint64_t{1} << number % 64);
}

// [device.bins.find] Each bin has a bit: the first one set is the smallest bin that fits.
Block* Bins::find(size_t size) const {
  const size_t number = classNumber(size);
  size_t word = number / 64;
  uint64_t bins = occupied_[word] & ~uint64_t{0} << number % 64;
  while (!bins && ++word < kWords) bins = occupied_[word];
  return bins ? first_[word * 64 + std::countr_zero(bins)] : nullptr;
}

std::vector<Block*> Bins::whole() const {
  std::vector<Block*> blocks;
  for (Block* block : first_) {
    for (; block; block = block->next) {
      if (!block->isPart()) blocks.push_back(block);
    }
  }
  return blocks;
}

// [-]
}  // namespace openreg
