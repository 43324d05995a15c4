// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/process_group/communicator_map.h"

#include <memory>

namespace openreg {

// [distributed.hosts.communicator] A group may span hosts, and a group of one host has a communicator.
/// As `makeCommunicator`, for ranks of any hosts. If all of them are on one
/// host, they use its devices' memory. Otherwise every rank exchanges bytes
/// with every other one through an engine. `setEngineFactory` says which.
std::shared_ptr<Communicator> makeAcrossHosts(
    int rank, int size, int device, c10::intrusive_ptr<JoiningStore> store);

// [-]
}  // namespace openreg
