// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/collectives.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace openreg {

// [distributed.communicator] The ranks of one host reach each other's memory.
/// How ranks find each other: a table of strings that all of them share.
struct Exchange {
  /// Makes a value visible to all ranks. A key is published once.
  std::function<void(const std::string& key, const std::string& value)> publish;
  /// Returns what a rank has published, or waits for it.
  /// @throws if that does not happen in time.
  std::function<std::string(const std::string& key)> lookUp;
};

// [distributed.communicator.factory] Making a communicator waits for no other rank.
/// A group of processes of one host and one user, each with one device. Ranks
/// may also be in one process. Each rank has device memory that all others map;
/// nothing moves through the host.
///
/// The constructor publishes this rank's memory and does not wait for others.
/// The first call that needs the others looks them up, in `connect`.
/// The destructor aborts, and does not wait for the peers: the memory goes back
/// to the device when they have left, too. The rounds and chunks of the group
/// are counted from `first_number`, the same on all ranks, modulo 2^32.
/// @throws c10::ValueError for more than 64 ranks, c10::OutOfMemoryError if the
/// device has no room for the mailbox.
std::shared_ptr<Collectives> makeCommunicator(int rank, int size, int device,
                                              Exchange exchange,
                                              uint32_t first_number = 0);

// [-]
}  // namespace openreg
