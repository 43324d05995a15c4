// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <map>
#include <mutex>

namespace openreg::hardware {

// [common.host-access] The host gets access to pages, so the blocks on both sides of a page must be known.
/// The blocks that the host may read and write under their own addresses. A
/// page is open while a block that is given lies on it.
class HostAccess {
 public:
  /// Gives or takes the access to the block that begins at `pointer`.
  orError_t set(const void* pointer, bool access);
  /// Takes the access to a block that is being freed; whether that worked.
  bool revoke(uintptr_t begin);

 private:
  bool close(uintptr_t begin);

  std::mutex mutex_;
  /// The size of each given block, by its beginning.
  std::map<uintptr_t, size_t> given_;
};

// [-]
}  // namespace openreg::hardware
