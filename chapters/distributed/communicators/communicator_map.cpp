// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicators/communicator_map.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>
#include <c10/util/Synchronized.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace openreg {

// [distributed.factory.replace] A group keeps the communicators it has; a new factory makes the next ones.
static std::atomic<CommunicatorFactory> factory(
    +[](int rank, int size, int, c10::intrusive_ptr<JoiningStore> store) {
      return makeCommunicator(rank, size, std::move(store));
    });

void setCommunicatorFactory(CommunicatorFactory other) { factory = other; }

// [distributed.communicator-map.streams] PyTorch may hold a stream for as long as it likes, so groups pass streams on and never destroy them.
static auto& spareStreams() {
  using Spare = std::array<std::vector<c10::Stream>, kMaxDevices>;
  static auto* streams = new c10::Synchronized<Spare>;
  return *streams;
}

static c10::Stream takeStream(c10::DeviceIndex index) {
  return spareStreams().withLock([&](auto& all) {
    auto& spare = all[index];
    if (spare.empty()) {
      const DeviceScope scope(index);
      orStream_t stream = nullptr;
      check(orStreamCreateWithPriority(&stream, 0, kGreatestPriority));
      return streamOfHandle(stream, index);
    }
    const c10::Stream stream = spare.back();
    spare.pop_back();
    return stream;
  });
}

// [distributed.communicator-map.device] A communicator takes its streams for as long as it lives.
DeviceCommunicator::DeviceCommunicator(std::shared_ptr<Communicator> made,
                                       c10::DeviceIndex index)
    : communicator(std::move(made)),
      collective_stream(takeStream(index)),
      batch_stream(takeStream(index)) {}

c10::Stream DeviceCommunicator::streamOf(bool is_send, int peer) {
  const auto found = streams_.find({is_send, peer});
  if (found != streams_.end()) return found->second;
  const c10::Stream stream = takeStream(collective_stream.device_index());
  return streams_.emplace(std::pair(is_send, peer), stream).first->second;
}

DeviceCommunicator::~DeviceCommunicator() {
  spareStreams().withLock([&](auto& all) {
    auto& spare = all[collective_stream.device_index()];
    spare.insert(spare.end(), {batch_stream, collective_stream});
    for (const auto& [key, stream] : streams_) spare.push_back(stream);
  });
}

// [distributed.communicator-map.groups] Each rank knows its groups, and the devices that it has used, in order.
namespace {

struct RankGroups {
  std::set<CommunicatorMap*> groups;
  std::vector<c10::DeviceIndex> devices;
};

std::mutex ranks_mutex;
auto& ranks = *new std::map<uint64_t, RankGroups>;  // outlives all groups

}  // namespace

// [distributed.communicator-map.create] A new group is at once known on the devices that its rank has used.
CommunicatorMap::CommunicatorMap(c10::intrusive_ptr<c10d::Store> store,
                                 int rank, int size, uint64_t global_rank,
                                 std::chrono::milliseconds timeout)
    : patience_(std::make_shared<Patience>(timeout)),
      store_(std::move(store)),
      rank_(rank),
      size_(size),
      global_rank_(global_rank) {
  const std::lock_guard lock(ranks_mutex);
  RankGroups& ours = ranks[global_rank];
  ours.groups.insert(this);
  for (c10::DeviceIndex index : ours.devices) tryToMake(index);
}

CommunicatorMap::~CommunicatorMap() { clear(); }

/// A work that the program keeps also keeps this object, so the group leaves
/// here.
void CommunicatorMap::clear() {
  std::map<c10::DeviceIndex, std::shared_ptr<DeviceCommunicator>> gone;
  const std::lock_guard lock(ranks_mutex);
  const auto ours = ranks.find(global_rank_);
  if (ours != ranks.end() && ours->second.groups.erase(this) &&
      ours->second.groups.empty()) {
    ranks.erase(ours);
  }
  const std::lock_guard of_map(mutex_);
  gone.swap(made_);
}

// [distributed.communicator-map.make] A group that finds no room now tries again when it is used.
std::shared_ptr<DeviceCommunicator> CommunicatorMap::on(
    c10::DeviceIndex index) {
  if (auto found = find(index)) return found;
  const std::lock_guard lock(ranks_mutex);
  RankGroups& ours = ranks.at(global_rank_);
  const bool is_new = std::find(ours.devices.begin(), ours.devices.end(),
                                index) == ours.devices.end();
  make(index);
  if (is_new) ours.devices.push_back(index);
  for (CommunicatorMap* group : ours.groups) group->tryToMake(index);
  return find(index);
}

void CommunicatorMap::tryToMake(c10::DeviceIndex index) {
  try {
    make(index);
  } catch (const std::exception&) {
    // It is made again, or refused, when it is used.
  }
}

// [distributed.communicator-map.factory] The communicator of a device has a part of the group's store.
void CommunicatorMap::make(c10::DeviceIndex index) {
  if (find(index)) return;
  const DeviceScope scope(index);
  const auto& devices = ranks.at(global_rank_).devices;
  const auto number =
      std::find(devices.begin(), devices.end(), index) - devices.begin();
  // The n-th device of a rank meets the n-th devices of its peers.
  auto made = std::make_shared<DeviceCommunicator>(
      factory.load()(rank_, size_, index,
                     c10::make_intrusive<JoiningStore>(std::to_string(number),
                                                       store_, patience_)),
      index);
  const std::lock_guard lock(mutex_);
  made_.emplace(index, std::move(made));
}

// [distributed.communicator-map.users] The watchdog may call these functions while another thread makes a communicator.
std::shared_ptr<DeviceCommunicator> CommunicatorMap::find(
    c10::DeviceIndex index) const {
  const std::lock_guard lock(mutex_);
  auto found = made_.find(index);
  return found == made_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<DeviceCommunicator>> CommunicatorMap::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DeviceCommunicator>> all;
  for (const auto& [index, each] : made_) all.push_back(each);
  return all;
}

std::optional<c10::DeviceIndex> CommunicatorMap::firstDevice() const {
  const std::lock_guard lock(ranks_mutex);
  const auto ours = ranks.find(global_rank_);
  if (ours == ranks.end()) return std::nullopt;
  const auto& devices = ours->second.devices;
  return devices.empty() ? std::nullopt : std::optional(devices.front());
}

void CommunicatorMap::setTimeout(std::chrono::milliseconds timeout) {
  patience_->timeout = timeout;
}

void CommunicatorMap::abort(const std::string& reason) noexcept {
  if (!is_leaving_) patience_->is_over = true;
  for (const auto& each : all()) each->communicator->abort(reason);
}

// [-]
}  // namespace openreg
