// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Storage.h>

#include <string>

namespace openreg {

// [hooks.sharing] A storage in two processes, without a copy.
/// Where another process finds a storage: in which block, as the driver wrote
/// it down, and how far from the block's beginning.
struct IpcLocation {
  std::string handle;
  size_t offset;
};

/// Waits for the storage's device, so that whoever is told sees all that was
/// written before. From now on the storage keeps its size. What is told is good
/// while this process lives and the storage does.
/// @throws c10::ValueError if the memory belongs to another process.
IpcLocation shareStorage(const c10::Storage& storage);

// [hooks.sharing.lend] Who sends a storage keeps it until nobody else has it open.
/// Keeps `storage` until all write ends of a pipe are closed. Takes the read
/// end, the file `returned`.
void lend(c10::Storage storage, int returned);

/// Drops what was lent and is back. Also called when a device is full, in
/// whichever thread asked for memory. What happens at a storage's end may call
/// this again.
void collectLent();

// [hooks.sharing.borrow] Who receives it has the write end, and closes it with the storage.
/// The same memory here, as a storage that cannot be resized. Takes the file
/// `lease` and closes it when the storage is freed, also if it throws. A
/// program that this process starts does not inherit the file; a forked child
/// closes it.
/// @throws c10::ValueError if the process that shared it has ended.
c10::Storage openStorage(const IpcLocation& where, size_t bytes, int lease);

// [-]
}  // namespace openreg
