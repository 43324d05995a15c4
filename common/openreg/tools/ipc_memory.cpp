// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/ipc_memory.h"

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/memory/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace openreg::hardware {

// [common.ipc.map] A block is mapped twice, once without access and once for device code.
IpcMemory::IpcMemory(uintptr_t begin, size_t size, ptrdiff_t window)
    : region_(begin, size, [](uintptr_t, size_t) {}), window_(window) {}

bool IpcMemory::map(Range pages, int file, uint64_t offset) const {
  return mapFile(file, pages.begin, pages.size(), PROT_NONE, offset) &&
         mapFile(file, pages.begin + window_, pages.size(),
                 PROT_READ | PROT_WRITE, offset);
}

// [common.ipc.unmap] Addresses that the system does not take back are never used again.
bool IpcMemory::unmap(Range pages) const {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  bool all = true;
  for (uintptr_t address : {pages.begin, pages.begin + window_}) {
    void* begin = reinterpret_cast<void*>(address);
    all &= mmap(begin, pages.size(), PROT_NONE, flags, -1, 0) != MAP_FAILED;
    madvise(begin, pages.size(), MADV_DONTDUMP);
  }
  return all;
}

void IpcMemory::release(Range pages) {
  if (unmap(pages)) region_.free(pages.begin);
}

// [common.ipc.file] /proc gives access to a file that another process has open, whatever file that is.
static int openFileOf(const IpcBlock& block) {
  const std::string path = "/proc/" + std::to_string(block.process) + "/fd/" +
                           std::to_string(block.file);
  // Opening a device or a pipe may have effects, so the name comes first.
  char name[32] = {};
  if (readlink(path.c_str(), name, sizeof(name) - 1) < 0) return -1;
  if (std::string(name).rfind("/memfd:openreg", 0) != 0) return -1;
  return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

// [common.ipc.check] A block must lie in the file, and the sum of its two numbers may overflow.
static bool isInside(size_t size, const IpcBlock& block) {
  return block.size > 0 && block.size <= size &&
         block.offset <= size - block.size;
}

// [common.ipc.open] A block that cannot be mapped twice is mapped nowhere.
uintptr_t IpcMemory::open(const IpcBlock& block) {
  const OpenFile file(openFileOf(block));
  const std::optional<size_t> size = sizeIfOurs(file.number, block.inode);
  if (!size) {
    throw fail(orErrorInvalidResourceHandle, "The memory of process ",
               block.process,
               " cannot be opened; it has ended, or is another user's.");
  }
  if (!isInside(*size, block)) {
    throw fail(orErrorInvalidResourceHandle, "The handle is of ", block.size,
               " bytes at offset ", block.offset,
               ", which are not in the memory of process ", block.process, ".");
  }
  const Range offsets = pagesOf({block.offset, block.offset + block.size});
  const uintptr_t begin = region_.allocate(offsets.size());
  const Range pages{begin, begin + offsets.size()};
  if (!begin || !map(pages, file.number, offsets.begin)) {
    if (begin) release(pages);
    throw fail(orErrorMemoryAllocation, "There are no addresses left for ",
               block.size, " bytes of another process.");
  }
  const uintptr_t address = begin + (block.offset - offsets.begin);
  try {
    blocks_.add({address, block.size, block.device});
  } catch (...) {
    release(pages);
    throw;
  }
  return address;
}

// [common.ipc.close] Closing frees the addresses; the memory stays with its owner.
void IpcMemory::close(uintptr_t pointer) {
  const Block block = blocks_.remove(pointer);
  release(pagesOf({block.begin, block.begin + block.size}));
}

orPointerAttributes IpcMemory::attributes(uintptr_t address) const {
  const auto block = blocks_.find(address);
  if (!block) return {orMemoryTypeUnmanaged, -1, nullptr, 0};
  return {orMemoryTypeDevice, block->device,
          reinterpret_cast<void*>(block->begin), block->size};
}

// [-]
}  // namespace openreg::hardware
