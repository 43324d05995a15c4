// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicators/communicator.h"
#include "torch_openreg/chapters/distributed/communicators/joining_store.h"

#include <c10/core/Stream.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.factory] One function makes every communicator, so that another transport can take its place.
using CommunicatorFactory = std::shared_ptr<Communicator> (*)(
    int rank, int size, int device, c10::intrusive_ptr<JoiningStore> store);

/// All later communicators come from `factory`; `makeCommunicator` is the first
/// one. The device is current when it is called.
void setCommunicatorFactory(CommunicatorFactory factory);

// [distributed.communicator-map] A communicator has streams that belong to it alone: one that two groups share would make one of them wait for the other's peers.
/// The communicator of one device, and where its work runs.
class DeviceCommunicator {
 public:
  /// Takes two streams of the device.
  DeviceCommunicator(std::shared_ptr<Communicator> made,
                     c10::DeviceIndex index);
  ~DeviceCommunicator();
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;

  const std::shared_ptr<Communicator> communicator;  ///< made before
  const c10::Stream collective_stream;               ///< of every collective
  const c10::Stream batch_stream;  ///< of batches of sends and receives
  /// Of single sends to `peer`, or receives; taken when it is first asked for.
  /// One thread at a time.
  c10::Stream streamOf(bool is_send, int peer);

 private:
  std::map<std::pair<bool, int>, c10::Stream> streams_;
};

// [distributed.communicator-map.class] The first use of a device makes the communicators of all groups of a rank.
/// The communicators of one rank of one group.
///
/// Making one publishes in the store where this rank's memory is, and does not
/// block. The first collective blocks until all peers have published theirs. So
/// that two groups may be used in different orders on different ranks, the
/// first use of a device by one group makes the communicators of all groups of
/// this rank. A rank that uses several devices must use them first in the same
/// order as its peers do.
class CommunicatorMap {
 public:
  /// `global_rank` tells apart ranks that are in one process.
  CommunicatorMap(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                  uint64_t global_rank, std::chrono::milliseconds timeout);
  ~CommunicatorMap();
  CommunicatorMap(const CommunicatorMap&) = delete;
  CommunicatorMap& operator=(const CommunicatorMap&) = delete;

  /// @throws c10::OutOfMemoryError if the device has no room for it.
  std::shared_ptr<DeviceCommunicator> on(c10::DeviceIndex index);
  /// Those made up to now. Any thread.
  std::vector<std::shared_ptr<DeviceCommunicator>> all() const;
  /// The one that this rank has used first in any group, which meets the first
  /// ones of its peers.
  std::optional<c10::DeviceIndex> firstDevice() const;
  /// How long a rank waits for what its peers have to tell.
  void setTimeout(std::chrono::milliseconds timeout);
  /// Ends all waits, those for the store too. Any thread.
  void abort(const std::string& reason) noexcept;
  /// Nothing is under way, and the group ends. What looks for the other ranks
  /// goes on in the background, because they may need this one.
  void leave() noexcept { is_leaving_ = true; }
  /// Leaves the group: the communicators go away with their last user.
  void clear();

  // [distributed.communicator-map.state] The watchdog aborts a group while another thread makes its communicators.
 private:
  std::shared_ptr<DeviceCommunicator> find(c10::DeviceIndex index) const;
  void make(c10::DeviceIndex index);
  void tryToMake(c10::DeviceIndex index);

  const std::shared_ptr<Patience> patience_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, size_;
  const uint64_t global_rank_;
  std::atomic<bool> is_leaving_{false};
  mutable std::mutex mutex_;
  std::map<c10::DeviceIndex, std::shared_ptr<DeviceCommunicator>> made_;
};

// [-]
}  // namespace openreg
