// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/mapping.h"

#include "torch_openreg/common/openreg/memory/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace openreg::hardware {

// [common.mapping.reserve] Address space costs nothing, and a page costs memory when it is first written.
Reservation reserveAddresses(size_t size) {
  void* begin = mmap(nullptr, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  // Writing a core of hundreds of gigabytes takes minutes, even if it is empty.
  madvise(begin, size, MADV_DONTDUMP);
  return {static_cast<char*>(begin), Unmap{size}};
}

void Unmap::operator()(char* begin) const { munmap(begin, size); }

// [common.mapping.private] Its owner and its seals tell a memory file of a driver from a file that has its name.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
/// The seal of a file that cannot be executed, and the wish for one, which
/// `vm.memfd_noexec` may demand. Older headers lack both.
constexpr int kNotExecutable = 0x20;
constexpr unsigned kWithoutExecution = 8;

std::optional<size_t> sizeIfOurs(int file, uint64_t inode) {
  struct stat about;
  if (fstat(file, &about) == 0 && about.st_ino == inode &&
      S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
      (about.st_mode & 0077) == 0 &&
      (fcntl(file, F_GET_SEALS) & ~kNotExecutable) == kSeals) {
    return about.st_size;
  }
  return std::nullopt;
}

// [common.mapping.file] A file that is larger than `ulimit -f` would end the program by a signal, so the limit is read first.
static std::runtime_error refusal(const std::string& what) {
  return std::runtime_error(what + ": " + std::strerror(errno) + ".");
}

MemoryFile::MemoryFile(size_t size) {
  rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < size) {
    throw std::runtime_error(
        "The devices have " + std::to_string(size) +
        " bytes, and a file may have " + std::to_string(files.rlim_cur) +
        " (`ulimit -f`); make OPENREG_DEVICE_MEMORY smaller.");
  }
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  number = memfd_create("openreg", kFlags | kWithoutExecution);
  // An old system does not know the last flag.
  if (number < 0 && errno == EINVAL) number = memfd_create("openreg", kFlags);
  if (number < 0) throw refusal("The system gives no memory file");
  if (fchmod(number, 0600) != 0 ||
      ftruncate(number, static_cast<off_t>(size)) != 0 ||
      fcntl(number, F_ADD_SEALS, kSeals) != 0) {
    throw refusal("The system gives no memory file of " + std::to_string(size) +
                  " bytes");
  }
}

OpenFile::~OpenFile() {
  if (number >= 0) close(number);
}

uint64_t MemoryFile::inode() const {
  struct stat about;
  if (fstat(number, &about) != 0) throw refusal("The memory file is closed");
  return about.st_ino;
}

// [common.mapping.map] A forked child inherits neither mapping, and a core dump leaves both out.
bool mapFile(int file, uintptr_t where, size_t size, int rights,
             uint64_t offset) {
  void* begin = reinterpret_cast<void*>(where);
  const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  if (mmap(begin, size, rights, flags, file, static_cast<off_t>(offset)) ==
      MAP_FAILED) {
    return false;
  }
  madvise(begin, size, MADV_DONTFORK);
  madvise(begin, size, MADV_DONTDUMP);
  return true;
}

// [common.mapping.left] The limit is on all addresses of the process, so those in use count.
size_t addressSpaceLeft() {
  rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) != 0 ||
      addresses.rlim_cur == RLIM_INFINITY) {
    return SIZE_MAX;
  }
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const size_t used = pages * pageSize();
  return addresses.rlim_cur > used ? addresses.rlim_cur - used : 0;
}

// [-]
}  // namespace openreg::hardware
