// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/ipc_memory.h"

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/memory/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace openreg::hardware {

// [common.ipc.map] A block is mapped twice, once without access and once for device code.
IpcMemory::IpcMemory(uintptr_t begin, size_t size, ptrdiff_t window)
    : region_(begin, size, [](uintptr_t, size_t) {}), window_(window) {}

bool IpcMemory::map(Range pages, int file, uint64_t offset) const {
  const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  for (const auto& [shift, rights] :
       {std::pair{ptrdiff_t{0}, PROT_NONE},
        std::pair{window_, PROT_READ | PROT_WRITE}}) {
    void* begin = reinterpret_cast<void*>(pages.begin + shift);
    if (mmap(begin, pages.size(), rights, flags, file,
             static_cast<off_t>(offset)) == MAP_FAILED) {
      return false;
    }
    madvise(begin, pages.size(), MADV_DONTFORK);
    madvise(begin, pages.size(), MADV_DONTDUMP);
  }
  return true;
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
namespace {

struct File {
  explicit File(const IpcBlock& block) {
    const std::string path = "/proc/" + std::to_string(block.process) + "/fd/" +
                             std::to_string(block.file);
    // Opening a device or a pipe may have effects, so the name comes first.
    char name[32] = {};
    if (readlink(path.c_str(), name, sizeof(name) - 1) < 0) return;
    if (std::string(name).rfind("/memfd:openreg", 0) != 0) return;
    number = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  }
  ~File() {
    if (number >= 0) ::close(number);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int number = -1;
};

// [common.ipc.check] A block must lie in the file, and the sum of its two numbers may overflow.
bool isDeviceMemory(int file, const IpcBlock& block) {
  struct stat about;
  return file >= 0 && fstat(file, &about) == 0 && about.st_ino == block.inode &&
         MemoryFile::isOurs(file);
}

bool isInside(int file, const IpcBlock& block) {
  struct stat about;
  if (fstat(file, &about) != 0) return false;
  const auto size = static_cast<uint64_t>(about.st_size);
  return block.size > 0 && block.size <= size &&
         block.offset <= size - block.size;
}

// [-]
}  // namespace

// [common.ipc.open] A block that cannot be mapped twice is mapped nowhere.
uintptr_t IpcMemory::open(const IpcBlock& block) {
  const File file(block);
  if (!isDeviceMemory(file.number, block)) {
    throw fail(orErrorInvalidResourceHandle, "The memory of process ",
               block.process,
               " cannot be opened; it has ended, or is another user's.");
  }
  if (!isInside(file.number, block)) {
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
  blocks_.add({address, block.size, block.device});
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
