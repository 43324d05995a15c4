// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace openreg {

// [hooks.pinned] Pinned host memory, which the device can copy while the host continues.
/// PyTorch's caching allocator over the driver's pinned memory. It does not
/// reuse a block before the streams that use it are done with it.
at::HostAllocator& hostAllocator();

/// Whether `pointer` is anywhere inside pinned memory; does not start the
/// device. Always false in a forked child, whose device cannot copy from it.
bool isPinned(const void* pointer);

// [-]
}  // namespace openreg
