// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace openreg {

// [hooks.pinned] Host memory that the device can copy from while the host goes on.
/// PyTorch's caching allocator over the driver's pinned memory. A block that a
/// stream uses is not handed out again before the stream is done with it.
at::HostAllocator& hostAllocator();

/// Whether `pointer` is anywhere inside pinned memory. In a forked child, which
/// cannot copy from it, nothing is.
bool isPinned(const void* pointer);

// [-]
}  // namespace openreg
