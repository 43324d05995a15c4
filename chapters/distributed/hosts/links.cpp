// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/links.h"

#include "torch_openreg/chapters/distributed/communicator/background.h"
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

#include <utility>

namespace openreg {

// [distributed.hosts.links.end] Freeing device memory waits for all devices, and an engine's end for its peers, so nobody waits for that.
Links::~Links() {
  abort();
  if (topology.hosts() == 1) return;
  runInBackground([memory = scratch, network = std::move(network),
                   pairs = std::move(pairs)]() mutable {
    orFree(memory);
    network = nullptr;
    pairs = nullptr;
  });
}

void Links::abort() noexcept {
  if (relay) relay->abort();
  if (local) local->abort();
}

// [distributed.hosts.links.make] The leaders have an engine of their own, in which the number of a rank is that of its host.
static std::shared_ptr<Links> connect(int rank, int size, int device,
                                      const Exchange& exchange,
                                      std::function<bool()> is_aborted) {
  check(orSetDevice(device));
  auto links = std::make_shared<Links>(rank, size, exchange);
  const Topology& topology = links->topology;
  const int host = topology.host_of[rank];
  links->local = makeCommunicator(
      topology.localRank(rank), static_cast<int>(topology.here().size()),
      device, withPrefix(exchange, "host " + std::to_string(host) + "/"), 0,
      topology.here());
  if (topology.hosts() == 1) return links;
  links->pairs = makeEngine(withPrefix(exchange, "pairs/"), rank, size);
  auto others = topology.leaders();
  others.erase(others.begin() + host);
  links->news =
      std::make_shared<News>(exchange, links->pairs, std::move(others));
  check(orMalloc(&links->scratch, kPlaces * kNetworkChunk));
  if (!topology.isLeader()) return links;
  links->network = std::make_shared<Network>(
      makeEngine(withPrefix(exchange, "leaders/"), host, topology.hosts()),
      size, std::move(is_aborted));
  links->relay =
      std::make_unique<Relay>(device, kPlaces * links->placeBytes(),
                              [local = links->local] { local->abort(); });
  return links;
}

// [distributed.hosts.connector.state] The thread may outlive the group, because nothing stops an engine that is being made.
struct Connector::State {
  State(int rank, int size, int device, Exchange exchange)
      : rank(rank), size(size), device(device), exchange(std::move(exchange)) {}

  const int rank, size, device;
  const Exchange exchange;
  std::atomic<bool> is_aborted{false};
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool is_running = true;
  std::shared_ptr<Links> links;
  std::exception_ptr error;

  static void run(const std::shared_ptr<State>& state);
};

void Connector::State::run(const std::shared_ptr<State>& state) {
  std::shared_ptr<Links> links;
  std::exception_ptr error;
  try {
    links = connect(state->rank, state->size, state->device, state->exchange,
                    [weak = std::weak_ptr(state)] {
                      const auto state = weak.lock();
                      return !state || state->is_aborted;
                    });
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(state->mutex);
  state->links = std::move(links);
  state->error = error;
  state->is_running = false;
  if (state->is_aborted && state->links) state->links->abort();
  state->changed.notify_all();
}

// [distributed.hosts.connector.start] A rank tells where it is before it waits for the others.
Connector::Connector(int rank, int size, int device, Exchange exchange)
    : state_(std::make_shared<State>(rank, size, device, std::move(exchange))) {
  publishIdentity(rank, state_->exchange);
  runInBackground([state = state_] { State::run(state); });
}

Connector::~Connector() { abort(); }

std::shared_ptr<Links> Connector::wait() {
  if (auto found = links()) return found;
  std::unique_lock lock(state_->mutex);
  if (!state_->is_running && state_->error) {
    state_->is_running = true;
    state_->error = nullptr;
    runInBackground([state = state_] { State::run(state); });
  }
  state_->changed.wait(lock, [&] { return !state_->is_running; });
  if (state_->error) std::rethrow_exception(state_->error);
  return state_->links;
}

std::shared_ptr<Links> Connector::links() const {
  const std::lock_guard lock(state_->mutex);
  return state_->links;
}

void Connector::abort() noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->is_aborted = true;
  if (state_->links) state_->links->abort();
}

bool Connector::isAborted() const noexcept { return state_->is_aborted; }

// [-]
}  // namespace openreg
