// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/network.h"

#include "torch_openreg/common/background.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <c10/util/Synchronized.h>

#include <utility>

namespace openreg {

// [distributed.hosts.engine.factory] A function of Python outlives every group, because Python may end first.
static auto& engineFactory() {
  static auto* factory = new c10::Synchronized<EngineFactory>;
  return *factory;
}

void setEngineFactory(EngineFactory factory) {
  engineFactory().withLock([&](auto& make) { make = std::move(factory); });
}

// [distributed.hosts.network.connect] A call that comes before the engine is there waits on the thread of its job.
void Network::connect(const c10::intrusive_ptr<c10d::Store>& store) noexcept {
  Engine engine;
  std::exception_ptr error;
  try {
    const auto make = engineFactory().withLock([](auto& make) { return make; });
    engine = make(store, rank_, size_, store->getTimeout());
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  engine_ = std::move(engine);
  error_ = error;
  changed_.notify_all();
}

Engine Network::engine() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return engine_ || error_ || is_aborted_; });
  TORCH_CHECK(!is_aborted_, "The group was aborted.");
  if (error_) std::rethrow_exception(error_);
  return engine_;
}

// [distributed.hosts.network.exchange] All messages are under way before this thread waits for the first one.
void Network::exchange(std::span<const Message> messages) {
  // The watchdog limits the time.
  constexpr std::chrono::hours kForever(24 * 100);
  const Engine engine = this->engine();
  Works works;
  int peer = -1;
  bool is_done = true;
  try {
    for (const Message& message : messages) {
      peer = message.peer;
      std::vector<at::Tensor> bytes{message.bytes};
      works.push_back(message.is_send ? engine->send(bytes, peer, message.tag)
                                      : engine->recv(bytes, peer, message.tag));
    }
    {
      const std::lock_guard lock(mutex_);
      is_done = !is_aborted_;
      waiting_.insert(&works);
    }
    for (size_t i = 0; i < works.size() && is_done; ++i) {
      peer = messages[i].peer;
      is_done = works[i]->wait(kForever);
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

// [distributed.hosts.network.all] In a collective, every rank has messages for every other one.
void Network::exchangeWithAll(
    int tag, const std::function<at::Tensor(int peer)>& send,
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

// [distributed.hosts.network.leave] Gloo drops what is on its way when it closes a connection, so the ranks say goodbye first.
void Network::abort() noexcept {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  changed_.notify_all();
  for (Works* works : waiting_) {
    for (const auto& work : *works) work->abort();
  }
}

void Network::leave(std::shared_ptr<Network> network) noexcept {
  constexpr int kGoodbye = 0;
  try {
    runInBackground([network = std::move(network)] {
      const auto byte = [](int) { return at::empty({1}, at::kByte); };
      try {
        network->exchangeWithAll(kGoodbye, byte, byte);
      } catch (const std::exception&) {
        // A rank that has ended needs no goodbye.
      }
    });
  } catch (const std::exception&) {
    // Without a thread, the connections close at once.
  }
}

/// Closing waits for the engine's threads.
Network::~Network() {
  if (!engine_) return;
  try {
    runInBackground(
        [engine = std::move(engine_)]() mutable { engine.reset(); });
  } catch (const std::exception&) {
    // Then it closes here.
  }
}

// [-]
}  // namespace openreg
