// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/engine.h"

#include "torch_openreg/chapters/distributed/communicator/reduce.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace openreg {
namespace {

// [distributed.hosts.engine.store] The engine finds its ranks through the table of the group.
class ExchangeStore final : public c10d::Store {
 public:
  explicit ExchangeStore(Exchange exchange) : exchange_(std::move(exchange)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<ExchangeStore>(exchange_);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    exchange_.publish(key, {value.begin(), value.end()});
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const std::string value = exchange_.lookUp(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) exchange_.lookUp(key);
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds&) override {
    wait(keys);
  }
  int64_t add(const std::string&, int64_t) override { return refuse(); }
  bool deleteKey(const std::string&) override { return refuse(); }
  bool check(const std::vector<std::string>&) override { return refuse(); }
  int64_t getNumKeys() override { return refuse(); }

 private:
  static bool refuse() {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "The store of an engine between hosts has only set, get and wait.");
  }

  const Exchange exchange_;
};

// [distributed.hosts.engine.factory] A function of Python outlives every group, because Python may end first.
struct EngineMaker {
  std::mutex mutex;
  EngineFactory make;
};

EngineMaker& engineMaker() {
  static auto* maker = new EngineMaker;
  return *maker;
}

}  // namespace

void setEngineFactory(EngineFactory factory) {
  const std::lock_guard lock(engineMaker().mutex);
  engineMaker().make = std::move(factory);
}

Engine makeEngine(const Exchange& exchange, int rank, int size) {
  EngineFactory make;
  {
    const std::lock_guard lock(engineMaker().mutex);
    make = engineMaker().make;
  }
  TORCH_CHECK(make,
              "A group of several hosts needs an engine between them; import "
              "torch_openreg, which takes gloo.");
  return make(c10::make_intrusive<ExchangeStore>(exchange), rank, size);
}

std::string brokenConnection(int rank, const std::exception& error) {
  return c10::str("rank ", rank,
                  " has ended, or has left the group: ", error.what());
}

// [distributed.hosts.network.wait] The engine's waits cannot be ended, so the thread polls.
Network::Network(Engine engine, int ranks, std::function<bool()> is_aborted)
    : engine_(std::move(engine)),
      ranks_(ranks),
      is_aborted_(std::move(is_aborted)) {}

void Network::finish(const c10::intrusive_ptr<c10d::Work>& work) const {
  using std::chrono::microseconds;
  microseconds pause(10), waited(0);
  while (!work->isCompleted()) {
    TORCH_CHECK(!is_aborted_(), "The group was aborted.");
    std::this_thread::sleep_for(pause);
    waited += pause;
    pause = std::min(waited / 16 + microseconds(10), microseconds(1000));
  }
  work->wait();
}

// [distributed.hosts.network.bytes] To the engine everything is bytes.
void Network::broadcast(const at::Tensor& data, int root) {
  std::vector<at::Tensor> tensors{data};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  finish(engine_->broadcast(tensors, options));
}

void Network::gather(at::Tensor all, at::Tensor own) {
  finish(engine_->_allgather_base(all, own));
}

// [distributed.hosts.network.reduce] Each host reduces its part for all, so every number crosses the network twice, whatever the number of hosts.
at::Tensor Network::reduceParts(const at::Tensor& place, size_t count,
                                NumberType type, Reduction reduction) {
  const size_t part = count * sizeOf(type), bytes = part * hosts();
  at::Tensor numbers = place.narrow(0, 0, bytes);
  at::Tensor parts = place.narrow(0, bytes, bytes);
  std::vector<int64_t> even;
  finish(engine_->alltoall_base(parts, numbers, even, even));
  char* begin = static_cast<char*>(parts.data_ptr());
  std::vector<const void*> inputs;
  for (int host = 0; host < hosts(); ++host) {
    inputs.push_back(begin + host * part);
  }
  // An average divides by the number of inputs, which must be that of the
  // ranks.
  const std::vector<char> zeros(reduction == Reduction::average ? part : 0);
  if (reduction == Reduction::average) inputs.resize(ranks_, zeros.data());
  reduceNumbers(begin, inputs, count, type, reduction);
  return parts.narrow(0, 0, part);
}

void Network::reduce(const at::Tensor& place, size_t count, NumberType type,
                     Reduction reduction) {
  const size_t part = (count + hosts() - 1) / hosts();
  const at::Tensor own = reduceParts(place, part, type, reduction);
  gather(place.narrow(0, 0, own.numel() * hosts()), own);
}

// [-]
}  // namespace openreg
