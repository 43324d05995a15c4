// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Storage.h>

namespace openreg {

// [hooks.storage] The memory under a tensor can grow and shrink.
/// Resizes `storage` to `bytes` bytes. It keeps as much of its contents as
/// fits. The copy is enqueued on the current stream, and the host does not
/// wait.
void resizeStorage(const c10::Storage& storage, size_t bytes);

// [-]
}  // namespace openreg
