// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/hosts/meeting.h"
#include "torch_openreg/chapters/distributed/hosts/network.h"
#include "torch_openreg/chapters/distributed/process_group/communicators.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

namespace openreg {

// [distributed.hosts.members] A thread finds the other ranks, so no call of one group waits for a call of another.
/// What a rank knows of the ranks of its group. Any thread.
class Members : public std::enable_shared_from_this<Members> {
 public:
  /// Of the rank `rank` of `size`, which computes on `device`.
  Members(int rank, int size, int device,
          c10::intrusive_ptr<JoiningStore> store)
      : rank_(rank),
        size_(size),
        device_(device),
        store_(std::move(store)),
        meeting_(rank, size),
        network_(std::make_shared<Network>(rank, size)) {}

  /// Begins to look for the other ranks, on a thread.
  void find();
  /// Waits until they are found: the communicator of a group of one host, or
  /// null. If that has failed, tries again.
  std::shared_ptr<Collectives> waitForCommunicator();
  /// The same, but null as long as they are not found.
  std::shared_ptr<Collectives> communicator() const;
  /// For a group of several hosts. It connects in the background.
  const std::shared_ptr<Network>& network() const { return network_; }
  /// Ends the wait.
  void abort() noexcept;

 private:
  void run() noexcept;

  const int rank_, size_, device_;
  const c10::intrusive_ptr<JoiningStore> store_;
  const Meeting meeting_;
  const std::shared_ptr<Network> network_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_running_ = false, is_aborted_ = false;
  std::shared_ptr<Collectives> communicator_;
  std::exception_ptr error_;
};

// [-]
}  // namespace openreg
