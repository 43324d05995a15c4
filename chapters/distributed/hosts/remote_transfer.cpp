// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/remote_transfer.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/distributed/communicator/signature.h"
#include "torch_openreg/chapters/distributed/communicator/transfer.h"
#include "torch_openreg/common/check.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <vector>

namespace openreg {
namespace {

// [distributed.hosts.remote.job] A job sends or receives one chunk, and can be told to stop waiting.
constexpr size_t kLaneChunk = size_t{1} << 20;

void move(const Engine& engine, Relay& relay, const Transfer& transfer,
          const at::Tensor& place) {
  bool is_done = false;
  try {
    std::vector<at::Tensor> tensors{place};
    const auto work = transfer.is_send
                          ? engine->send(tensors, transfer.peer, 0)
                          : engine->recv(tensors, transfer.peer, 0);
    relay.setCancel([work] { work->abort(); });
    is_done = work->wait();
  } catch (const std::exception& error) {
    TORCH_CHECK(false, brokenConnection(transfer.peer, error));
  }
  relay.setCancel(nullptr);
  TORCH_CHECK(is_done, "The group was aborted.");
}

// [distributed.hosts.remote.size] A transfer begins with its size, so a receiver that expects another one can say so.
void moveSize(const Engine& engine, Relay& relay, const Transfer& transfer,
              uint64_t number) {
  const auto size =
      at::full({1}, static_cast<int64_t>(transfer.bytes), at::kLong);
  move(engine, relay, transfer, size);
  const std::string problem =
      findDisagreement(transfer.peer, *size.const_data_ptr<int64_t>(),
                       engine->getRank(), transfer.bytes, number);
  TORCH_CHECK(problem.empty(), problem);
}

// [-]
}  // namespace

// [distributed.hosts.remote.lane] A lane is made when a pair first uses it.
RemoteTransfers::~RemoteTransfers() {
  abort();
  for (auto& [key, lane] : lanes_) orStreamDestroy(lane.stream);
}

RemoteTransfers::Lane& RemoteTransfers::lane(bool is_send, int peer) {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[{is_send, peer}];
  if (lane.relay) return lane;
  const DeviceScope scope(static_cast<c10::DeviceIndex>(device_));
  check(orStreamCreate(&lane.stream));
  lane.relay = std::make_shared<Relay>(device_, 2 * kLaneChunk,
                                       [local = local_] { local->abort(); });
  return lane;
}

orStream_t RemoteTransfers::stream(bool is_send, int peer) {
  return lane(is_send, peer).stream;
}

// [distributed.hosts.remote.enqueue] A chunk waits for the chunk before the last one, whose memory it uses.
size_t RemoteTransfers::enqueue(const Transfer& transfer, size_t done) {
  Lane& lane = this->lane(transfer.is_send, transfer.peer);
  const auto relay = lane.relay;
  if (done == 0) {
    relay->request(lane.stream,
                   [=, engine = engine_, number = ++lane.transfers] {
                     moveSize(engine, *relay, transfer, number);
                   });
  }
  const size_t bytes = std::min(kLaneChunk, transfer.bytes - done);
  if (bytes == 0) return 0;
  const size_t half = lane.chunks++ % 2;
  const auto place = relay->memory().narrow(0, half * kLaneChunk, bytes);
  char* data = static_cast<char*>(transfer.data) + done;
  relay->await(lane.stream, lane.jobs[half]);
  if (transfer.is_send) {
    check(orMemcpyAsync(place.data_ptr(), data, bytes, orMemcpyDeviceToHost,
                        lane.stream));
  }
  lane.jobs[half] = relay->request(lane.stream, [=, engine = engine_] {
    move(engine, *relay, transfer, place);
  });
  if (transfer.is_send) return bytes;
  relay->await(lane.stream, lane.jobs[half]);
  check(orMemcpyAsync(data, place.data_ptr(), bytes, orMemcpyHostToDevice,
                      lane.stream));
  return bytes;
}

// [distributed.hosts.remote.begin] The streams of the pairs begin after the stream of the call, which goes on after them.
void RemoteTransfers::begin(orStream_t stream,
                            std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    join_(stream, lane(transfer.is_send, transfer.peer).stream);
  }
  takeTurns(transfers, [this](const Transfer& transfer, size_t done) {
    return enqueue(transfer, done);
  });
}

void RemoteTransfers::end(orStream_t stream,
                          std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    join_(lane(transfer.is_send, transfer.peer).stream, stream);
  }
}

// [distributed.hosts.remote.end] A lane that fails has the sentence of its engine.
void RemoteTransfers::abort() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [key, lane] : lanes_) {
    if (lane.relay) lane.relay->abort();
  }
}

bool RemoteTransfers::isAborted() const noexcept {
  const std::lock_guard lock(mutex_);
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& entry) {
    return entry.second.relay && entry.second.relay->isAborted();
  });
}

std::string RemoteTransfers::problem() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, lane] : lanes_) {
    if (lane.relay && !lane.relay->problem().empty()) {
      return lane.relay->problem();
    }
  }
  return "";
}

// [-]
}  // namespace openreg
