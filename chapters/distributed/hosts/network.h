// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

namespace openreg {

// [distributed.hosts.engine] Gloo crosses the network, and Python makes it.
using Engine = c10::intrusive_ptr<c10d::Backend>;
/// Blocks until all ranks of the engine have called it, or the time is over.
using EngineFactory =
    std::function<Engine(c10::intrusive_ptr<c10d::Store>, int rank, int size,
                         std::chrono::milliseconds timeout)>;

/// Makes the engines of later groups. They must send and receive bytes of CPU
/// tensors.
void setEngineFactory(EngineFactory factory);

// [distributed.hosts.network] Every rank of a group reaches every other one.
/// Bytes for another rank, or from it.
struct Message {
  bool is_send;      ///< to the peer; otherwise from it
  int peer;          ///< a rank of the group
  int tag;           ///< that of the peer's message that belongs to this one
  at::Tensor bytes;  ///< of the CPU, contiguous
};

/// One rank's connections. Any thread.
class Network {
 public:
  /// Connects nothing yet.
  Network(int rank, int size) : rank_(rank), size_(size) {}
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Makes the engine, which waits for the other ranks.
  void connect(const c10::intrusive_ptr<c10d::Store>& store) noexcept;
  /// Sends and receives all of them at once, when the network is connected.
  /// @throws c10::Error that names the rank whose connection is broken.
  void exchange(std::span<const Message> messages);
  /// The same with every other rank: `send(peer)` and `receive(peer)` are
  /// tensors, which may be undefined.
  void exchangeWithAll(int tag, const std::function<at::Tensor(int peer)>& send,
                       const std::function<at::Tensor(int peer)>& receive);
  /// Ends all waits, present and future.
  void abort() noexcept;
  /// Closes the connections when all ranks have left, without waiting for that.
  static void leave(std::shared_ptr<Network> network) noexcept;

  // [distributed.hosts.network.members] An abort cancels the works for which threads wait.
 private:
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;
  Engine engine();

  const int rank_, size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Engine engine_;
  std::exception_ptr error_;
  bool is_aborted_ = false;
  std::set<Works*> waiting_;
};

// [-]
}  // namespace openreg
