// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/communicator.h"

#include <memory>

namespace openreg {

// [distributed.hosts.collectives] A group may span hosts, and a group of one host is as it was.
/// As `makeCommunicator`, for ranks of any hosts. The ranks of a host use its
/// devices' memory. One rank of each host, its leader, exchanges bytes with the
/// other leaders through an engine. `setEngineFactory` says which.
/// `endedPeer` is also what a rank of any host has found out about the group.
std::shared_ptr<Collectives> makeAcrossHosts(int rank, int size, int device,
                                             Exchange exchange);

// [-]
}  // namespace openreg
