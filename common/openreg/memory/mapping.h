// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::hardware {

// [common.mapping] Mappings and the memory file are owned, so a start that fails leaves nothing behind.
/// A range of addresses without access, which no core dump contains. Empty if
/// the system has no such range.
class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(size_t size);
  ~Reservation();
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  char* begin() const { return begin_; }

 private:
  char* begin_ = nullptr;
  size_t size_ = 0;
};

// [common.mapping.memory-file] The bytes of all devices are in a file that has no name.
/// A memory file of `size` bytes, for this user alone. Its size is sealed: a
/// process that has opened it cannot cut it off under the others.
/// @throws std::runtime_error if the system refuses it.
class MemoryFile {
 public:
  explicit MemoryFile(size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Whether an open file is such a file of this user.
  static bool isOurs(int number);

  int number() const { return number_; }
  uint64_t inode() const;
  /// Maps the first `size` bytes at `where`, inside a reservation.
  void map(char* where, size_t size, int rights) const;

 private:
  int number_ = -1;
};

/// How much address space this process may still reserve, in bytes; SIZE_MAX if
/// `ulimit -v` does not limit it.
size_t addressSpaceLeft();

// [-]
}  // namespace openreg::hardware
