// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/memory/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sanitizer/asan_interface.h>

#include <system_error>

namespace openreg::hardware {
namespace {

// [common.memory.map] Address space costs nothing, and a page costs memory when it is first written.
void* map(void* where, size_t size, int protection, int flags, int file) {
  void* address = mmap(where, size, protection, flags | MAP_NORESERVE, file, 0);
  if (address == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap");
  }
  return address;
}

constexpr size_t kPinnedMemory = size_t{1} << 38;
constexpr size_t kIpcMemory = size_t{1} << 38;

// [-]
}  // namespace

// [common.memory.mappings] The same pages are mapped twice, and a forked child has neither mapping.
Memory::Memory(int device_count, size_t device_memory) {
  const size_t size = device_count * device_memory;
  file_ = memfd_create("openreg", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  // Both mappings leave room for the blocks of other processes.
  const size_t room = size + kIpcMemory;
  const int reserved = MAP_PRIVATE | MAP_ANONYMOUS;
  char* front = static_cast<char*>(map(nullptr, room, PROT_NONE, reserved, -1));
  char* back = static_cast<char*>(map(nullptr, room, PROT_NONE, reserved, -1));
  map(front, size, PROT_NONE, MAP_SHARED | MAP_FIXED, file_);
  map(back, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_);
  madvise(front, size, MADV_DONTFORK);
  madvise(back, size, MADV_DONTFORK);
  base_ = reinterpret_cast<uintptr_t>(front);
  window_ = back - front;
  ipc_ = std::make_unique<IpcMemory>(base_ + size, kIpcMemory, window_);
  createRegions(device_count, device_memory);
}

// [common.memory.regions] Each device has its part of the file, and unused pages return to the system.
void Memory::createRegions(int device_count, size_t device_memory) {
  for (int index = 0; index < device_count; ++index) {
    devices_.push_back(std::make_unique<Region>(
        base_ + index * device_memory, device_memory,
        [this](uintptr_t begin, size_t bytes) {
          fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(begin - base_),
                    static_cast<off_t>(bytes));
        }));
  }
  void* pinned = map(nullptr, kPinnedMemory, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1);
  pinned_ = std::make_unique<Region>(
      reinterpret_cast<uintptr_t>(pinned), kPinnedMemory,
      [](uintptr_t begin, size_t bytes) {
        madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTNEED);
      });
}

IpcBlock Memory::ipcBlock(uintptr_t pointer, size_t size, int device) const {
  struct stat about;
  if (fstat(file_, &about) != 0) {
    throw std::system_error(errno, std::generic_category(), "fstat");
  }
  return {IpcBlock::kMagic, getpid(),        file_, device,
          about.st_ino,     pointer - base_, size};
}

// [common.memory.poison] The back mapping of freed memory stays accessible, so AddressSanitizer is told that it is freed.
void Memory::poison(uintptr_t address, size_t size) const {
  ASAN_POISON_MEMORY_REGION(reinterpret_cast<void*>(address + window_), size);
}

void Memory::unpoison(uintptr_t address, size_t size) const {
  ASAN_UNPOISON_MEMORY_REGION(reinterpret_cast<void*>(address + window_), size);
}

// [common.memory.attributes] The device of an address follows from the range that contains it.
orPointerAttributes Memory::attributes(const void* pointer) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (pinned_->contains(address)) {
    if (auto block = pinned_->find(address)) {
      return {orMemoryTypeHost, -1, reinterpret_cast<void*>(block->begin),
              block->size};
    }
  }
  if (ipc_->contains(address)) return ipc_->attributes(address);
  for (size_t index = 0; index < devices_.size(); ++index) {
    if (!devices_[index]->contains(address)) continue;
    if (auto block = devices_[index]->find(address)) {
      return {orMemoryTypeDevice, static_cast<int>(index),
              reinterpret_cast<void*>(block->begin), block->size};
    }
  }
  return {orMemoryTypeUnmanaged, -1, nullptr, 0};
}

bool Memory::contains(const void* pointer) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  return pinned_->contains(address) || ipc_->contains(address) ||
         address - base_ < devices_.size() * devices_[0]->size();
}

// [-]
}  // namespace openreg::hardware
