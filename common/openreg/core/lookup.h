// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "common/openreg/core/machine.h"

namespace openreg::hardware {

// [common.lookup] Numbers, pointers and handles of the interface become objects in one place.
/// The number of the device that is current on the calling thread.
int& currentIndex();
/// The device that is current on the calling thread.
Device& current();

/// Whether device `index` exists; if not, sets the last error.
orError_t checkDevice(int index);
/// Whether `pointer` is the beginning of a block of device memory, and the
/// attributes of the block; if not, sets the last error.
orError_t checkBlock(const void* pointer, orPointerAttributes* attributes);

/// The queue of stream `handle`, where null means the current device's default
/// stream. Null, and the last error, if there is no such stream.
CommandQueue* findStream(orStream_t handle);
/// The event of `handle`. Null, and the last error, if there is no such event.
Event* findEvent(orEvent_t handle);

// [-]
}  // namespace openreg::hardware
