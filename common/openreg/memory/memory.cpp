// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace openreg::hardware {

// [common.memory.mappings] The same pages are mapped twice, at a distance that is the same for all devices.
static constexpr size_t kLeastReserve = size_t{1} << 20;

Memory::Memory(int device_count, size_t device_memory, size_t reserve_size,
               bool guarded)
    : file_(device_count * device_memory) {
  const size_t size = device_count * device_memory;
  const size_t left = addressSpaceLeft();
  // Half of the addresses that are left belong to the program.
  if (left != SIZE_MAX) {
    const size_t most = left / 2 > 2 * size ? (left / 2 - 2 * size) / 3 : 0;
    reserve_size = std::max(kLeastReserve, std::min(reserve_size, most));
  }
  while (!reserve(size, reserve_size / kLeastReserve * kLeastReserve)) {
    reserve_size /= 2;
    if (reserve_size >= kLeastReserve) continue;
    throw std::runtime_error(
        "The memory of the devices, " + std::to_string(size) +
        " bytes, needs twice as many addresses, and the system does not give "
        "them; make OPENREG_DEVICE_MEMORY smaller, or `ulimit -v` larger.");
  }
  base_ = reinterpret_cast<uintptr_t>(front_.get());
  window_ = back_.get() - front_.get();
  const int back_rights = guarded ? PROT_NONE : PROT_READ | PROT_WRITE;
  if (!mapFile(file_.number, base_, size, PROT_NONE) ||
      !mapFile(file_.number, base_ + window_, size, back_rights)) {
    throw std::runtime_error("The memory file cannot be mapped: " +
                             std::string(std::strerror(errno)) + ".");
  }
  ipc_ = std::make_unique<IpcMemory>(base_ + size, reserve_, window_);
  createRegions(device_count, device_memory, guarded);
}

// [common.memory.reserve] Behind the devices, both mappings leave addresses for the blocks of other processes.
bool Memory::reserve(size_t size, size_t reserve) {
  // What the attempt before got would count against this one.
  for (auto* range : {&front_, &back_, &pinned_range_}) range->reset();
  front_ = reserveAddresses(size + reserve);
  back_ = reserveAddresses(size + reserve);
  pinned_range_ = reserveAddresses(reserve);
  reserve_ = reserve;
  return front_ && back_ && pinned_range_;
}

// [common.memory.regions] Each device has its part of the file, and unused pages return to the system.
void Memory::createRegions(int device_count, size_t device_memory,
                           bool guarded) {
  for (int index = 0; index < device_count; ++index) {
    devices_.push_back(std::make_unique<Region>(
        base_ + index * device_memory, device_memory,
        [this](uintptr_t begin, size_t bytes) { releasePages(begin, bytes); },
        layoutOfBlocks(guarded)));
  }
  pinned_ = std::make_unique<Region>(
      reinterpret_cast<uintptr_t>(pinned_range_.get()), reserve_,
      [](uintptr_t begin, size_t bytes) {
        madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTNEED);
      });
}

void Memory::releasePages(uintptr_t begin, size_t bytes) const {
  fallocate(file_.number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(begin - base_), static_cast<off_t>(bytes));
}

// [common.memory.pinned] Only pages that had a block can be written, because a limit counts writable addresses.
uintptr_t Memory::allocatePinned(size_t size) {
  const uintptr_t block = pinned_->allocate(size);
  if (!block) return 0;
  const Range pages = pagesOf({block, block + size});
  void* begin = reinterpret_cast<void*>(pages.begin);
  if (mprotect(begin, pages.size(), PROT_READ | PROT_WRITE) != 0) {
    pinned_->free(block);
    return 0;
  }
  // It is host memory like any other, so a core dump has it.
  madvise(begin, pages.size(), MADV_DODUMP);
  return block;
}

IpcBlock Memory::ipcBlock(uintptr_t pointer, size_t size, int device) const {
  return {IpcBlock::kMagic, getpid(),        file_.number, device,
          file_.inode(),    pointer - base_, size};
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
    if (auto block = pinned_->blocks().find(address)) {
      return {orMemoryTypeHost, -1, reinterpret_cast<void*>(block->begin),
              block->size};
    }
  }
  if (ipc_->contains(address)) return ipc_->attributes(address);
  const size_t index = (address - base_) / devices_[0]->size();
  if (index < devices_.size()) {
    if (auto block = devices_[index]->blocks().find(address)) {
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
