// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/communicator.h"

#include <cstddef>
#include <string>
#include <vector>

namespace openreg {

// [distributed.hosts.identity] Two ranks are on one host if one can open the other's memory.
/// The environment variable OPENREG_HOST_ID, if it is set. Otherwise a string
/// that is the same for processes of one user that see each other's process
/// numbers, and so each other's memory files.
std::string hostIdentity();

// [distributed.hosts.topology] Hosts are numbered in the order of their first ranks, which lead them.
/// Which ranks of a group are on which host. The same on all ranks.
struct Topology {
  /// Waits until all ranks have published where they are.
  Topology(int rank, int size, const Exchange& exchange);

  /// How many hosts the group has; they are numbered from 0.
  int hosts() const { return static_cast<int>(ranks_of.size()); }
  /// The number of a rank among those of its host; 0 is the leader.
  int localRank(int rank) const;
  /// Whether the rank is on this host.
  bool isHere(int rank) const { return host_of[rank] == host_of[own]; }
  /// The ranks of this host, in order.
  const std::vector<int>& here() const { return ranks_of[host_of[own]]; }
  /// The leader of each host.
  std::vector<int> leaders() const;
  /// The number of ranks of the largest host.
  size_t widest() const;
  /// Where a rank's part is, if each host has room for `widest()` parts.
  size_t placeOf(int rank) const;
  /// The lowest rank of a host is its leader.
  bool isLeader() const { return here().front() == own; }

  int own;                                 ///< this process's rank
  std::vector<int> host_of;                ///< by rank
  std::vector<std::vector<int>> ranks_of;  ///< by host, in order
};

/// Tells the other ranks where this one is.
void publishIdentity(int rank, const Exchange& exchange);
/// The same table, under other keys.
Exchange withPrefix(const Exchange& exchange, const std::string& prefix);

// [-]
}  // namespace openreg
