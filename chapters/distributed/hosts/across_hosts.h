// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicators/communicator_map.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <functional>

namespace openreg {

// [distributed.hosts.engine] Gloo carries bytes over the network, and Python makes the object.
using Engine = c10::intrusive_ptr<c10d::Backend>;
/// Blocks until all ranks of the engine have called it, or the time is over.
using EngineFactory =
    std::function<Engine(c10::intrusive_ptr<c10d::Store>, int rank, int size,
                         std::chrono::milliseconds timeout)>;

/// Later groups may have ranks of any hosts. If all of them are on one host,
/// they use its devices' memory. Otherwise every rank exchanges bytes with
/// every other one through an engine, which must send and receive CPU tensors.
void spanHosts(EngineFactory make);
/// Ends the search of every group of the process, and waits until no thread
/// searches. Meant for the end of the process.
void endSearches();

// [-]
}  // namespace openreg
