// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Storage.h>

#include <string>

namespace openreg {

// [hooks.sharing] Another process opens the same memory instead of receiving a copy.
/// Where another process finds a storage: the driver's handle of a block, and
/// the offset in bytes from the beginning of that block.
struct IpcLocation {
  std::string handle;  ///< the bytes of an orIpcMemHandle_t
  size_t offset;       ///< bytes
};

/// The location of `storage` for other processes. Waits for its device, so that
/// they see all earlier writes, and makes the storage non-resizable. The
/// location is valid while both this process and the storage live.
/// @throws c10::ValueError if the memory belongs to another process.
IpcLocation shareStorage(const c10::Storage& storage);

// [hooks.sharing.lend] The sender keeps a storage until no other process has it open.
/// Keeps `storage` until all write ends of a pipe are closed. Takes ownership
/// of the read end, the file descriptor `returned`.
void lend(c10::Storage storage, int returned);

/// Drops the lent storages whose receivers have closed them. A full device
/// calls it as well, on the thread that asked for memory. Reentrant: dropping a
/// storage may call it again.
void collectLent();

// [hooks.sharing.borrow] The receiver holds the write end of a pipe, and closes it with the storage.
/// A storage of `bytes` bytes over the memory at `where`; it cannot be resized.
/// Takes ownership of the file descriptor `lease`, which is closed when the
/// storage is freed, or if this throws. Programs that this process starts do
/// not inherit the descriptor; a forked child closes it.
/// @throws c10::ValueError if the process that shared it has ended.
c10::Storage openStorage(const IpcLocation& where, size_t bytes, int lease);

// [-]
}  // namespace openreg
