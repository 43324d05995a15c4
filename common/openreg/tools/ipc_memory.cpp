// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/ipc_memory.h"

#include "torch_openreg/common/openreg/core/failure.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <string>

namespace openreg::hardware {

// [common.ipc.map] A block is mapped twice, once without access and once for device code.
IpcMemory::IpcMemory(uintptr_t begin, size_t size, ptrdiff_t window)
    : region_(begin, size, [](uintptr_t, size_t) {}), window_(window) {}

bool IpcMemory::map(const Mapping& mapping, int file, uint64_t offset) const {
  const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  for (const auto& [shift, rights] :
       {std::pair{ptrdiff_t{0}, PROT_NONE},
        std::pair{window_, PROT_READ | PROT_WRITE}}) {
    void* begin = reinterpret_cast<void*>(mapping.begin + shift);
    if (mmap(begin, mapping.mapped, rights, flags, file,
             static_cast<off_t>(offset)) == MAP_FAILED) {
      return false;
    }
    madvise(begin, mapping.mapped, MADV_DONTFORK);
    madvise(begin, mapping.mapped, MADV_DONTDUMP);
  }
  return true;
}

// [common.ipc.unmap] Addresses that the system does not take back are never used again.
bool IpcMemory::unmap(const Mapping& mapping) const {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  bool all = true;
  for (uintptr_t address : {mapping.begin, mapping.begin + window_}) {
    void* begin = reinterpret_cast<void*>(address);
    all &= mmap(begin, mapping.mapped, PROT_NONE, flags, -1, 0) != MAP_FAILED;
    madvise(begin, mapping.mapped, MADV_DONTDUMP);
  }
  return all;
}

void IpcMemory::release(const Mapping& mapping) {
  if (unmap(mapping)) region_.free(mapping.begin);
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
  return file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
         about.st_ino == block.inode && fcntl(file, F_GET_SEALS) >= 0;
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
orError_t IpcMemory::open(const IpcBlock& block, uintptr_t* pointer) {
  const File file(block);
  if (!isDeviceMemory(file.number, block)) {
    return fail(orErrorInvalidResourceHandle, "The memory of process ",
                block.process,
                " cannot be opened; it has ended, or is another user's.");
  }
  if (!isInside(file.number, block)) {
    return fail(orErrorInvalidResourceHandle, "The handle is of ", block.size,
                " bytes at offset ", block.offset,
                ", which are not in the memory of process ", block.process,
                ".");
  }
  const uint64_t page = sysconf(_SC_PAGESIZE);
  const uint64_t offset = block.offset / page * page;
  const uint64_t skipped = block.offset - offset;
  const size_t mapped = (skipped + block.size + page - 1) / page * page;
  const uintptr_t begin = region_.allocate(mapped);
  const Mapping mapping{begin, mapped, block.size, block.device};
  if (!begin || !map(mapping, file.number, offset)) {
    if (begin) release(mapping);
    return fail(orErrorMemoryAllocation, "There are no addresses left for ",
                block.size, " bytes of another process.");
  }
  *pointer = begin + skipped;
  std::unique_lock lock(mutex_);
  opened_.emplace(*pointer, mapping);
  return orSuccess;
}

// [common.ipc.close] Closing frees the addresses; the memory stays with its owner.
bool IpcMemory::claim(uintptr_t pointer) {
  std::unique_lock lock(mutex_);
  auto opened = opened_.find(pointer);
  return opened != opened_.end() &&
         !std::exchange(opened->second.is_claimed, true);
}

void IpcMemory::unclaim(uintptr_t pointer) {
  std::unique_lock lock(mutex_);
  opened_.find(pointer)->second.is_claimed = false;
}

void IpcMemory::close(uintptr_t pointer) {
  std::unique_lock lock(mutex_);
  auto opened = opened_.find(pointer);
  release(opened->second);
  opened_.erase(opened);
}

orPointerAttributes IpcMemory::attributes(uintptr_t address) const {
  std::shared_lock lock(mutex_);
  auto after = opened_.upper_bound(address);
  if (after == opened_.begin()) return {orMemoryTypeUnmanaged, -1, nullptr, 0};
  const auto& [pointer, mapping] = *std::prev(after);
  if (mapping.is_claimed || address - pointer >= mapping.size) {
    return {orMemoryTypeUnmanaged, -1, nullptr, 0};
  }
  return {orMemoryTypeDevice, mapping.device, reinterpret_cast<void*>(pointer),
          mapping.size};
}

// [-]
}  // namespace openreg::hardware
