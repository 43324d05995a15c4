// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

namespace openreg {

// [device.allocator] The allocator of our devices, for the rest of the backend.
/// Never destroyed: tensors may be freed until the very end of the process.
c10::DeviceAllocator& allocator();

/// Every segment of every device, and the blocks in it.
std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot();

// [-]
}  // namespace openreg
