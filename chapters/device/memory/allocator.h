// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <functional>
#include <vector>

namespace openreg {

// [device.allocator] The allocator of our devices, for the rest of the backend.
/// Never destroyed: tensors may be freed until the very end of the process.
c10::DeviceAllocator& allocator();

/// Serves the requests on streams of device `index` that `claims` accepts from
/// pool `id`, until `endPool`; see `Cache::beginPool`. Each use is released
/// once, and names the streams on which the memory was used.
void beginPool(c10::DeviceIndex index, c10::MempoolId_t id,
               std::function<bool(c10::Stream)> claims);
/// See `Cache::endPool`.
void endPool(c10::DeviceIndex index, c10::MempoolId_t id);
/// Whether a request to any device may go to a pool at present. Memory should
/// not be given back to the driver then, which would wait for the devices and
/// so disturb a capture.
bool isAnyPoolInUse();
/// See `Cache::releasePool`.
void releasePool(c10::DeviceIndex index, c10::MempoolId_t id,
                 const std::vector<c10::Stream>& streams);

/// The streams that are recorded for the block at `data`, which are not from
/// now on. For memory that is written again without having been freed: the
/// writer waits for them. None if the memory is not ours.
std::vector<c10::Stream> takeRecordedStreams(const c10::DataPtr& data);

/// Every segment of every device, and the blocks in it.
std::vector<c10::CachingDeviceAllocator::SegmentInfo> memorySnapshot();

// [-]
}  // namespace openreg
