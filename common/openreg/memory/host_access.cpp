// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/host_access.h"

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/guards/layout.h"

#include <sys/mman.h>

#include <iterator>

namespace openreg::hardware {
namespace {

// [common.host-access.pages] The rights of a range of whole pages change in one call.
uintptr_t pageOf(uintptr_t address) { return address & ~(pageSize() - 1); }

bool setRights(uintptr_t begin, uintptr_t end, int rights) {
  return begin >= end ||
         mprotect(reinterpret_cast<void*>(begin), end - begin, rights) == 0;
}

// [-]
}  // namespace

// [common.host-access.set] The block is looked up under the lock, so a block that is being freed is never opened.
orError_t HostAccess::set(const void* pointer, bool access) {
  std::lock_guard lock(mutex_);
  orPointerAttributes block;
  if (orError_t error = checkBlock(pointer, &block)) return error;
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  bool changed;
  if (access) {
    const bool is_new = given_.emplace(begin, block.size).second;
    changed =
        setRights(pageOf(begin), pageOf(begin + block.size - 1) + pageSize(),
                  PROT_READ | PROT_WRITE);
    if (!changed && is_new) close(begin);
  } else {
    changed = close(begin);
  }
  if (changed) return orSuccess;
  return fail(orErrorUnknown, "The system did not change the rights of ",
              pointer, ".");
}

bool HostAccess::revoke(uintptr_t begin) {
  std::lock_guard lock(mutex_);
  return close(begin);
}

// [common.host-access.close] A page stays open while the block before or after it is given.
bool HostAccess::close(uintptr_t begin) {
  const auto block = given_.find(begin);
  if (block == given_.end()) return true;
  uintptr_t first = pageOf(begin);
  uintptr_t last = pageOf(begin + block->second - 1) + pageSize();
  if (block != given_.begin()) {
    const auto before = std::prev(block);
    if (before->first + before->second > first) first += pageSize();
  }
  const auto after = std::next(block);
  if (after != given_.end() && after->first < last) last -= pageSize();
  if (!setRights(first, last, PROT_NONE)) return false;
  given_.erase(block);
  return true;
}

// [-]
}  // namespace openreg::hardware
