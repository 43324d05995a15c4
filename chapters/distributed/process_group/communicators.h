// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/communicator.h"
#include "torch_openreg/chapters/distributed/process_group/joining_store.h"

#include <c10/core/Stream.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg {

// [distributed.factory] One function makes every communicator, so that another transport can take its place.
using CollectivesFactory = std::function<std::shared_ptr<Collectives>(
    int rank, int size, int device, c10::intrusive_ptr<JoiningStore> store)>;

/// The store as a communicator sees it.
Exchange exchangeOf(c10::intrusive_ptr<JoiningStore> store);

/// All communicators of later groups come from `factory`; `makeCommunicator` is
/// the first one. Returns the factory that was in place.
CollectivesFactory setCollectivesFactory(CollectivesFactory factory);

// [distributed.communicators] A group has one communicator for each device that its rank uses.
/// The streams of a communicator belong to it alone: a stream that two groups
/// share would make one of them wait for the other's peers.
struct DeviceGroup {
  std::shared_ptr<Collectives> collectives;  ///< made before, and shared
  c10::Stream collective_stream;             ///< of every collective
  c10::Stream batch_stream;                  ///< of batches of transfers

  /// Takes two streams of the device.
  DeviceGroup(std::shared_ptr<Collectives> made, c10::DeviceIndex index);
  ~DeviceGroup();
};

// [distributed.communicators.class] The first use of a device makes the communicators of all groups of a rank.
/// The communicators of one rank of one group.
///
/// Making one tells the peers through the store where this rank's memory is,
/// and waits for nobody. The first collective waits until the peers have told
/// the same. So that two groups may be used in different orders on different
/// ranks, the first use of a device by one group makes the communicators of all
/// groups of this rank. A rank that uses several devices must use them first
/// in the same order as its peers do.
class Communicators {
 public:
  /// `global_rank` tells apart ranks that are in one process.
  Communicators(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                uint64_t global_rank, std::chrono::milliseconds timeout);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// @throws c10::OutOfMemoryError if the device has no room for it.
  std::shared_ptr<DeviceGroup> on(c10::DeviceIndex index);
  /// Those made up to now. Any thread.
  std::vector<std::shared_ptr<DeviceGroup>> all() const;
  /// How long a rank waits for what its peers have to tell.
  void setTimeout(std::chrono::milliseconds timeout);
  /// Ends all waits, those for the store too. Any thread.
  void abort() noexcept;
  /// Nothing is under way, and the group ends. What looks for the other ranks
  /// goes on in the background, because they may need this one.
  void leave() noexcept { is_leaving_ = true; }
  /// Leaves the group: the communicators go away with their last user.
  void clear();

  // [distributed.communicators.state] The watchdog aborts a group while another thread makes its communicators.
 private:
  std::shared_ptr<DeviceGroup> find(c10::DeviceIndex index) const;
  void make(c10::DeviceIndex index);
  void tryToMake(c10::DeviceIndex index);

  const std::shared_ptr<Patience> patience_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, size_;
  const uint64_t global_rank_;
  std::atomic<bool> is_leaving_{false};
  mutable std::mutex mutex_;
  std::map<c10::DeviceIndex, std::shared_ptr<DeviceGroup>> made_;
};

// [-]
}  // namespace openreg
