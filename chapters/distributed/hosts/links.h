// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/hosts/engine.h"
#include "torch_openreg/chapters/distributed/hosts/news.h"
#include "torch_openreg/chapters/distributed/hosts/relay.h"
#include "torch_openreg/chapters/distributed/hosts/topology.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

namespace openreg {

// [distributed.hosts.chunks] A chunk is small enough to overlap with others, and large enough to keep the network busy.
inline constexpr size_t kNetworkChunk = size_t{1} << 20;
/// How many chunks are on the network while the stream prepares the next one.
inline constexpr size_t kAhead = 2;
inline constexpr size_t kPlaces = kAhead + 1;  ///< for chunks in work

// [distributed.hosts.links] What a rank needs to reach all others.
struct Links {
  /// Waits until all ranks have said where they are.
  Links(int rank, int size, const Exchange& exchange)
      : topology(rank, size, exchange) {}
  ~Links();

  /// Ends all waits on these links, for good.
  void abort() noexcept;
  /// A chunk, padded to whole numbers for each host, and as much to work.
  size_t placeBytes() const {
    return 2 * (kNetworkChunk + 64 * topology.hosts());
  }

  const Topology topology;  ///< which ranks are on which host
  /// The ranks of this host.
  std::shared_ptr<LocalCollectives> local;
  /// The rest only if there are several hosts. An engine of all ranks, for
  /// transfers:
  Engine pairs;
  std::shared_ptr<News> news;  ///< what ranks have found out about the group
  /// Device memory for `kPlaces` chunks.
  void* scratch = nullptr;
  /// Of a leader.
  std::shared_ptr<Network> network;
  std::unique_ptr<Relay> relay;  ///< as `network`
};

// [distributed.hosts.connector] Engines are made by all ranks together, so a thread makes them, and no call of one group waits for a call of another.
/// Finds the ranks of a group on a thread of its own.
class Connector {
 public:
  /// Returns at once; the thread begins here.
  Connector(int rank, int size, int device, Exchange exchange);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  /// Waits until the thread is done. If it has failed before anybody waited,
  /// tries again.
  std::shared_ptr<Links> wait();
  /// Null while they are not there.
  std::shared_ptr<Links> links() const;
  /// Ends `wait`, and the links if they are there. Any thread.
  void abort() noexcept;
  bool isAborted() const noexcept;  ///< any thread

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// [-]
}  // namespace openreg
