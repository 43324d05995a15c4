// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Storage.h>

namespace openreg {

// [hooks.storage] Growing and shrinking the memory under a tensor.
/// Gives `storage` room for `bytes` bytes. What it held and still fits is kept,
/// in stream order: nothing waits for the copy.
void resizeStorage(const c10::Storage& storage, size_t bytes);

// [-]
}  // namespace openreg
