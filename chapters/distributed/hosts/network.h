// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"
#include "torch_openreg/common/background.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <c10/util/Synchronized.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.hosts.engine.factory] A function of Python outlives every group, because Python may end first.
inline auto& engineFactory() {
  static auto* factory = new c10::Synchronized<EngineFactory>;
  return *factory;
}

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
  /// Messages that are under way, each with its peer.
  using Works = std::vector<std::pair<int, c10::intrusive_ptr<c10d::Work>>>;

 public:
  /// Connects nothing yet.
  Network(int rank, int size) : rank_(rank), size_(size) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  /// Closing waits for the engine's threads.
  ~Network() {
    if (!engine_) return;
    try {
      runInBackground([engine = std::move(engine_),
                       goodbyes = std::move(goodbyes_)]() mutable {
        goodbyes.clear();
        engine.reset();
      });
    } catch (const std::exception&) {
      // Then it closes here.
    }
  }

  // [distributed.hosts.network.connect] A call that comes before the engine is there waits on the thread of its job.
  /// Makes the engine, which waits for the other ranks.
  void connect(const c10::intrusive_ptr<c10d::Store>& store) noexcept {
    Engine engine;
    Works goodbyes;
    std::exception_ptr error;
    try {
      const auto make =
          engineFactory().withLock([](auto& make) { return make; });
      engine = make(store, rank_, size_, store->getTimeout());
      for (int peer = 0; peer < size_; ++peer) {
        if (peer == rank_) continue;
        std::vector<at::Tensor> byte{at::empty({1}, at::kByte)};
        goodbyes.emplace_back(peer, engine->recv(byte, peer, kGoodbye));
      }
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    engine_ = std::move(engine);
    goodbyes_ = std::move(goodbyes);
    error_ = error;
    changed_.notify_all();
  }

  // [distributed.hosts.network.exchange] All messages are under way before this thread waits for the first one.
  /// Sends and receives all of them at once, when the network is connected, and
  /// waits for other `works`, too.
  /// @throws c10::Error that names the rank whose connection is broken.
  void exchange(std::span<const Message> messages, Works works = {}) {
    const Engine engine = connected();
    int peer = -1;
    bool is_done = true;
    try {
      for (const Message& message : messages) {
        peer = message.peer;
        std::vector<at::Tensor> bytes{message.bytes};
        works.emplace_back(peer, message.is_send
                                     ? engine->send(bytes, peer, message.tag)
                                     : engine->recv(bytes, peer, message.tag));
      }
      {
        const std::lock_guard lock(mutex_);
        is_done = !is_aborted_;
        waiting_.insert(&works);
      }
      for (size_t i = 0; i < works.size() && is_done; ++i) {
        peer = works[i].first;
        is_done = works[i].second->wait(kForever);
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      waiting_.erase(&works);
      TORCH_CHECK(false, "rank ", peer,
                  " has ended, or has left the group: ", error.what());
    }
    const std::lock_guard lock(mutex_);
    waiting_.erase(&works);
    TORCH_CHECK(is_done, "The group was aborted.");
  }

  // [distributed.hosts.network.ended] When a connection breaks, gloo fails the receives that are pending, but not always the message that is half transferred.
  /// A sentence about a rank whose connection broke before its goodbye came, or
  /// an empty one. Does not wait.
  std::string endedPeer() {
    const std::lock_guard lock(mutex_);
    for (const auto& [peer, work] : goodbyes_) {
      try {
        work->abort();  // The wait then only looks.
        work->wait(kForever);
      } catch (const std::exception&) {
        return c10::str("rank ", peer, " has ended, or has left the group");
      }
    }
    return "";
  }

  // [distributed.hosts.network.all] In a collective, every rank has messages for every other one.
  /// `send(peer)` and `receive(peer)` are tensors, which may be undefined.
  void exchangeWithAll(int tag, const std::function<at::Tensor(int peer)>& send,
                       const std::function<at::Tensor(int peer)>& receive) {
    std::vector<Message> messages;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const at::Tensor out = send(peer), in = receive(peer);
      if (out.defined()) messages.push_back({true, peer, tag, out});
      if (in.defined()) messages.push_back({false, peer, tag, in});
    }
    exchange(messages);
  }

  // [distributed.hosts.network.leave] Closing a connection of gloo drops bytes that were not read, so each rank first exchanges a last byte with all others.
  /// Ends all waits, present and future.
  void abort() noexcept {
    const std::lock_guard lock(mutex_);
    is_aborted_ = true;
    changed_.notify_all();
    for (Works* works : waiting_) {
      for (const auto& [peer, work] : *works) work->abort();
    }
  }

  /// Closes the connections when all ranks have left, without waiting for that.
  static void leave(std::shared_ptr<Network> network) noexcept {
    try {
      runInBackground([network = std::move(network)] {
        try {
          network->connected();
          std::vector<Message> bytes;
          for (const auto& [peer, work] : network->goodbyes_) {
            bytes.push_back({true, peer, kGoodbye, at::empty({1}, at::kByte)});
          }
          network->exchange(bytes, network->goodbyes_);
        } catch (const std::exception&) {
          // A rank that has ended needs no goodbye.
        }
      });
    } catch (const std::exception&) {
      // Without a thread, the connections close at once.
    }
  }

  // [distributed.hosts.network.members] An abort cancels the works for which threads wait.
 private:
  static constexpr int kGoodbye = 0;  ///< the tag of the last byte
  /// The watchdog limits the time.
  static constexpr std::chrono::hours kForever{24 * 100};

  Engine connected() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return engine_ || error_ || is_aborted_; });
    TORCH_CHECK(!is_aborted_, "The group was aborted.");
    if (error_) std::rethrow_exception(error_);
    return engine_;
  }

  const int rank_, size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Engine engine_;
  Works goodbyes_;  ///< from each other rank; they stand ready all the time
  std::exception_ptr error_;
  bool is_aborted_ = false;
  std::set<Works*> waiting_;
};

// [-]
}  // namespace openreg
