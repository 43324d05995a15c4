// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicator/collectives.h"
#include "torch_openreg/chapters/distributed/communicator/communicator.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <functional>
#include <string>

namespace openreg {

// [distributed.hosts.engine] PyTorch's engine for CPU tensors crosses the network, and PyTorch makes it.
using Engine = c10::intrusive_ptr<c10d::Backend>;
/// Blocks until all ranks of the engine have called it.
using EngineFactory =
    std::function<Engine(c10::intrusive_ptr<c10d::Store>, int rank, int size)>;

/// Makes the engines of later groups. They must move and exchange bytes of CPU
/// tensors.
void setEngineFactory(EngineFactory factory);
/// Makes one, which waits for its other ranks.
/// @throws c10::Error if no factory was set.
Engine makeEngine(const Exchange& exchange, int rank, int size);
/// A sentence for an exception of an engine about one rank.
std::string brokenConnection(int rank, const std::exception& error);

// [distributed.hosts.network] The leaders of the hosts exchange bytes, and reduce them as the devices do.
/// What a leader does on the network, with bytes in tensors of the CPU. Each
/// function waits for the other leaders.
class Network {
 public:
  /// The group has `ranks` ranks. The waits end with an exception once
  /// `is_aborted` is true; the engine may still use the tensors then.
  Network(Engine engine, int ranks, std::function<bool()> is_aborted);

  /// One rank of the engine is one host.
  int hosts() const { return engine_->getSize(); }

  /// `data` is host memory, and so it is below.
  void broadcast(const at::Tensor& data, int root);
  /// `all` receives the bytes of each host.
  void gather(at::Tensor all, at::Tensor own);
  /// The place has `count` numbers for each host, and as much room behind them,
  /// where this host gets the reduction of those for it.
  /// An average is that of all ranks.
  at::Tensor reduceParts(const at::Tensor& place, size_t count, NumberType type,
                         Reduction reduction);
  /// Replaces `count` numbers at the beginning of `place` by their reduction
  /// over all hosts, in the same way.
  void reduce(const at::Tensor& place, size_t count, NumberType type,
              Reduction reduction);

 private:
  void finish(const c10::intrusive_ptr<c10d::Work>& work) const;

  const Engine engine_;
  const int ranks_;
  const std::function<bool()> is_aborted_;
};

// [-]
}  // namespace openreg
