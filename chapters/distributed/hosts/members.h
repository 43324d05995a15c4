// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/hosts/meeting.h"
#include "torch_openreg/chapters/distributed/hosts/network.h"
#include "torch_openreg/chapters/distributed/process_group/communicator_map.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

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
  // [distributed.hosts.members.found] A rank whose group spans hosts still has a communicator, alone.
  /// A communicator of the library: with all ranks if they are on one host, and
  /// otherwise with this rank alone, whose requests and aborts it serves.
  struct Found {
    std::shared_ptr<Communicator> communicator;  ///< null if not found
    bool is_one_host;                            ///< and it has all ranks
    /// The communicator of all ranks; null if there is none.
    std::shared_ptr<Communicator> here() const {
      return is_one_host ? communicator : nullptr;
    }
  };
  /// Waits until they are found. If that has failed, tries again.
  Found wait();
  /// The same, but does not wait.
  Found found() const;
  /// For a group of several hosts. It connects in the background.
  const std::shared_ptr<Network>& network() const { return network_; }
  /// Ends the wait.
  void abort(const std::string& reason) noexcept;
  /// Ends the search of every group of the process, and waits until no thread
  /// searches. Meant for the end of the process.
  static void endAll();

 private:
  void run() noexcept;

  const int rank_, size_, device_;
  const c10::intrusive_ptr<JoiningStore> store_;
  const Meeting meeting_;
  const std::shared_ptr<Network> network_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_running_ = false, is_aborted_ = false;
  std::string reason_;
  Found found_{};
  std::exception_ptr error_;
};

// [-]
}  // namespace openreg
