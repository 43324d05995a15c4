// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/tools/ipc_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <string>

namespace openreg::hardware {

// [common.ipc.map] A block is mapped twice, once without access and once for device code.
IpcMemory::IpcMemory(uintptr_t begin, size_t size, ptrdiff_t window)
    : region_(begin, size, [](uintptr_t, size_t) {}), window_(window) {}

void IpcMemory::map(const Mapping& mapping, int file, uint64_t offset) const {
  void* front = reinterpret_cast<void*>(mapping.begin);
  void* back = reinterpret_cast<void*>(mapping.begin + window_);
  const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  mmap(front, mapping.mapped, PROT_NONE, flags, file, offset);
  mmap(back, mapping.mapped, PROT_READ | PROT_WRITE, flags, file, offset);
  madvise(front, mapping.mapped, MADV_DONTFORK);
  madvise(back, mapping.mapped, MADV_DONTFORK);
}

void IpcMemory::unmap(const Mapping& mapping) const {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  for (uintptr_t begin : {mapping.begin, mapping.begin + window_}) {
    mmap(reinterpret_cast<void*>(begin), mapping.mapped, PROT_NONE, flags, -1,
         0);
  }
}

// [common.ipc.open] /proc gives access to a file that another process has open.
uintptr_t IpcMemory::open(const IpcBlock& block) {
  const std::string path = "/proc/" + std::to_string(block.process) + "/fd/" +
                           std::to_string(block.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return 0;
  const uint64_t page = sysconf(_SC_PAGESIZE);
  const uint64_t offset = block.offset / page * page;
  const uint64_t skipped = block.offset - offset;
  const size_t mapped = (skipped + block.size + page - 1) / page * page;
  uintptr_t pointer = 0;
  if (const uintptr_t begin = region_.allocate(mapped)) {
    const Mapping mapping{begin, mapped, block.size, block.device};
    map(mapping, file, offset);
    pointer = begin + skipped;
    std::unique_lock lock(mutex_);
    opened_.emplace(pointer, mapping);
  }
  ::close(file);
  return pointer;
}

// [common.ipc.close] Closing frees the addresses; the memory stays with its owner.
bool IpcMemory::close(uintptr_t pointer) {
  std::unique_lock lock(mutex_);
  auto opened = opened_.find(pointer);
  if (opened == opened_.end()) return false;
  unmap(opened->second);
  region_.free(opened->second.begin);
  opened_.erase(opened);
  return true;
}

orPointerAttributes IpcMemory::attributes(uintptr_t address) const {
  std::shared_lock lock(mutex_);
  auto after = opened_.upper_bound(address);
  if (after == opened_.begin()) return {orMemoryTypeUnmanaged, -1, nullptr, 0};
  const auto& [pointer, mapping] = *std::prev(after);
  if (address - pointer >= mapping.size) {
    return {orMemoryTypeUnmanaged, -1, nullptr, 0};
  }
  return {orMemoryTypeDevice, mapping.device, reinterpret_cast<void*>(pointer),
          mapping.size};
}

// [-]
}  // namespace openreg::hardware
