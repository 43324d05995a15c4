// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <system_error>

namespace openreg::hardware {
namespace {

// [common.memory.map] Address space is free; pages cost when they are touched.
void* map(size_t size, int protection, int flags, int file) {
  void* address =
      mmap(nullptr, size, protection, flags | MAP_NORESERVE, file, 0);
  if (address == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap");
  }
  return address;
}

constexpr size_t kPinnedMemory = size_t{1} << 38;

// [-]
}  // namespace

// [common.memory.mappings] The same pages twice, and neither in a forked child.
Memory::Memory(int device_count, size_t device_memory) {
  const size_t size = device_count * device_memory;
  if (size) {
    const int file = memfd_create("openreg", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) {
      throw std::system_error(errno, std::generic_category(), "memfd_create");
    }
    char* front = static_cast<char*>(map(size, PROT_NONE, MAP_SHARED, file));
    char* back =
        static_cast<char*>(map(size, PROT_READ | PROT_WRITE, MAP_SHARED, file));
    window_ = back - front;
    madvise(front, size, MADV_DONTFORK);
    madvise(back, size, MADV_DONTFORK);
    const uintptr_t base = reinterpret_cast<uintptr_t>(front);
    for (int index = 0; index < device_count; ++index) {
      devices_.push_back(std::make_unique<Region>(
          base + index * device_memory, device_memory,
          [file, base](uintptr_t begin, size_t bytes) {
            fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(begin - base),
                      static_cast<off_t>(bytes));
          }));
    }
  }
  void* pinned = map(kPinnedMemory, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1);
  pinned_ = std::make_unique<Region>(
      reinterpret_cast<uintptr_t>(pinned), kPinnedMemory,
      [](uintptr_t begin, size_t bytes) {
        madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTNEED);
      });
}

// [common.memory.attributes] Which range, then which block.
orPointerAttributes Memory::attributes(const void* pointer) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (pinned_->contains(address)) {
    if (auto block = pinned_->find(address)) {
      return {orMemoryTypeHost, -1, reinterpret_cast<void*>(block->begin),
              block->size};
    }
  }
  for (size_t index = 0; index < devices_.size(); ++index) {
    if (!devices_[index]->contains(address)) continue;
    if (auto block = devices_[index]->find(address)) {
      return {orMemoryTypeDevice, static_cast<int>(index),
              reinterpret_cast<void*>(block->begin), block->size};
    }
  }
  return {orMemoryTypeUnmanaged, -1, nullptr, 0};
}

// [-]
}  // namespace openreg::hardware
