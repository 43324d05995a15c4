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
#include <utility>

namespace openreg::hardware {

// [common.mapping.reserve] Address space costs nothing, and a page costs memory when it is first written.
Reservation::Reservation(size_t size) : size_(size) {
  void* begin = mmap(nullptr, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return;
  // Writing a core of hundreds of gigabytes takes minutes, even if it is empty.
  madvise(begin, size, MADV_DONTDUMP);
  begin_ = static_cast<char*>(begin);
}

Reservation::Reservation(Reservation&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(other.size_) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

Reservation::~Reservation() {
  if (begin_) munmap(begin_, size_);
}

// [common.mapping.private] Its owner and its seals tell a memory file of a driver from a file that has its name.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool MemoryFile::isOurs(int number) {
  struct stat about;
  return fstat(number, &about) == 0 && S_ISREG(about.st_mode) &&
         about.st_uid == geteuid() && (about.st_mode & 0077) == 0 &&
         fcntl(number, F_GET_SEALS) == kSeals;
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
  number_ = memfd_create("openreg", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (number_ < 0) throw refusal("The system gives no memory file");
  if (fchmod(number_, 0600) == 0 &&
      ftruncate(number_, static_cast<off_t>(size)) == 0 &&
      fcntl(number_, F_ADD_SEALS, kSeals) == 0) {
    return;
  }
  const auto error = refusal("The system gives no memory file of " +
                             std::to_string(size) + " bytes");
  close(number_);
  throw error;
}

MemoryFile::~MemoryFile() { close(number_); }

uint64_t MemoryFile::inode() const {
  struct stat about;
  if (fstat(number_, &about) != 0) throw refusal("The memory file is closed");
  return about.st_ino;
}

// [common.mapping.map] A forked child inherits neither mapping, and a core dump leaves both out.
void MemoryFile::map(char* where, size_t size, int rights) const {
  if (mmap(where, size, rights, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, number_,
           0) == MAP_FAILED) {
    throw refusal("The memory file cannot be mapped");
  }
  madvise(where, size, MADV_DONTFORK);
  madvise(where, size, MADV_DONTDUMP);
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
