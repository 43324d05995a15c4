// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace openreg::hardware {

// [common.mapping] Mappings and the memory file are owned, so a start that fails leaves nothing behind.
struct Unmap {
  size_t size = 0;
  void operator()(char* begin) const;
};
/// The beginning of a range of addresses, which it gives back.
using Reservation = std::unique_ptr<char, Unmap>;

/// A range of addresses without access, which no core dump contains. Null if
/// the system has no such range.
Reservation reserveAddresses(size_t size);

// [common.mapping.memory-file] The bytes of all devices are in a file that has no name.
struct OpenFile {
  explicit OpenFile(int number = -1) : number(number) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int number;  ///< -1 if none is open
};

/// A memory file of `size` bytes, for this user alone. Its size is sealed: a
/// process that has opened it cannot cut it off under the others.
/// @throws std::runtime_error if the system refuses it.
struct MemoryFile : OpenFile {
  explicit MemoryFile(size_t size);
  uint64_t inode() const;
};

/// The size of an open file if it is such a file of this user, and has this
/// number in its file system.
std::optional<size_t> sizeIfOurs(int file, uint64_t inode);

/// Maps `size` bytes of an open file, from `offset` on, at `where`, inside a
/// reservation; whether the system did it.
bool mapFile(int file, uintptr_t where, size_t size, int rights,
             uint64_t offset = 0);

/// How much address space this process may still reserve, in bytes; SIZE_MAX if
/// `ulimit -v` does not limit it.
size_t addressSpaceLeft();

// [-]
}  // namespace openreg::hardware
