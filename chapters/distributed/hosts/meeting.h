// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/process_group/joining_store.h"

#include <string>

namespace openreg {

// [distributed.hosts.identity] Two ranks are on one host if one can open the other's memory.
/// The environment variable OPENREG_HOST_ID, if it is set. Otherwise a string
/// that is the same for processes of one user that see each other's process
/// numbers, and so each other's memory files.
std::string hostIdentity();

// [distributed.hosts.meeting] A store may hold what ranks of an earlier attempt left there, so the ranks first make sure that all of them live.
/// One rank's part in the meeting of a group.
class Meeting {
 public:
  /// Of the rank `rank` of `size`.
  Meeting(int rank, int size);

  /// What all ranks of a group know after they have met.
  struct Result {
    bool is_one_host;  ///< every rank can open the memory of every other one
    /// The same on all ranks, and different for each meeting.
    std::string name;
  };
  /// Waits until every rank has seen the word of every other one. May be called
  /// again after an exception.
  /// @throws c10::DistBackendError if that takes too long.
  Result hold(JoiningStore& store) const;

 private:
  const int rank_, size_;
  /// Random, and then the host.
  const std::string word_;
};

// [-]
}  // namespace openreg
