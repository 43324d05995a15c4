// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/remote_transfer.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"

#include <algorithm>
#include <vector>

namespace openreg {
namespace {

// [distributed.hosts.remote.job] A job sends or receives one chunk, and can be told to stop waiting.
constexpr size_t kLaneChunk = size_t{1} << 20;

void moveChunk(const Engine& engine, Relay& relay, const Transfer& transfer,
               const at::Tensor& place) {
  std::vector<at::Tensor> tensors{place};
  const auto work = transfer.is_send ? engine->send(tensors, transfer.peer, 0)
                                     : engine->recv(tensors, transfer.peer, 0);
  relay.setCancel([work] { work->abort(); });
  const bool is_done = work->wait();
  relay.setCancel(nullptr);
  TORCH_CHECK(is_done, "The group was aborted.");
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
void RemoteTransfers::enqueue(Lane& lane, const Transfer& transfer) {
  const auto relay = lane.relay;
  for (size_t done = 0; done < transfer.bytes; done += kLaneChunk) {
    const size_t bytes = std::min(kLaneChunk, transfer.bytes - done);
    const size_t half = lane.chunks++ % 2;
    const auto place = relay->memory().narrow(0, half * kLaneChunk, bytes);
    char* data = static_cast<char*>(transfer.data) + done;
    relay->await(lane.stream, lane.jobs[half]);
    if (transfer.is_send) {
      check(orMemcpyAsync(place.data_ptr(), data, bytes, orMemcpyDeviceToHost,
                          lane.stream));
    }
    lane.jobs[half] = relay->request(lane.stream, [=, engine = engine_] {
      moveChunk(engine, *relay, transfer, place);
    });
    if (transfer.is_send) continue;
    relay->await(lane.stream, lane.jobs[half]);
    check(orMemcpyAsync(data, place.data_ptr(), bytes, orMemcpyHostToDevice,
                        lane.stream));
  }
}

// [distributed.hosts.remote.begin] The streams of the pairs begin after the stream of the call, which goes on after them.
void RemoteTransfers::begin(orStream_t stream,
                            std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    Lane& lane = this->lane(transfer.is_send, transfer.peer);
    join_(stream, lane.stream);
    enqueue(lane, transfer);
  }
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
