// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/communicators.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace openreg {

// [distributed.factory.replace] A group keeps the communicators it has; a new factory makes the next ones.
namespace {

struct Factory {
  std::mutex mutex;
  CollectivesFactory make = [](int rank, int size, int device,
                               c10::intrusive_ptr<JoiningStore> store) {
    return makeCommunicator(rank, size, device, exchangeOf(std::move(store)));
  };
};

Factory& factory() {
  static Factory factory;
  return factory;
}

}  // namespace

CollectivesFactory setCollectivesFactory(CollectivesFactory other) {
  const std::lock_guard lock(factory().mutex);
  return std::exchange(factory().make, std::move(other));
}

// [distributed.communicators.streams] PyTorch may hold a stream for as long as it likes, so groups pass streams on and never destroy them.
namespace {

struct SpareStreams {
  std::mutex mutex;
  std::array<std::vector<c10::Stream>, kMaxDevices> of;
};

SpareStreams& spareStreams() {
  static auto* streams = new SpareStreams;
  return *streams;
}

c10::Stream takeStream(c10::DeviceIndex index) {
  const std::lock_guard lock(spareStreams().mutex);
  auto& spare = spareStreams().of[index];
  if (spare.empty()) {
    const DeviceScope scope(index);
    orStream_t stream = nullptr;
    check(orStreamCreateWithPriority(&stream, 0, kGreatestPriority));
    return streamOfHandle(stream, index);
  }
  const c10::Stream stream = spare.back();
  spare.pop_back();
  return stream;
}

}  // namespace

// [distributed.communicators.device-group] A communicator takes its streams for as long as it lives.
DeviceGroup::DeviceGroup(std::shared_ptr<Collectives> made,
                         c10::DeviceIndex index)
    : collectives(std::move(made)),
      collective_stream(takeStream(index)),
      batch_stream(takeStream(index)) {}

DeviceGroup::~DeviceGroup() {
  const std::lock_guard lock(spareStreams().mutex);
  auto& spare = spareStreams().of[collective_stream.device_index()];
  spare.insert(spare.end(), {batch_stream, collective_stream});
}

// [distributed.communicators.exchange] A communicator needs only two functions of a store.
Exchange exchangeOf(c10::intrusive_ptr<JoiningStore> store) {
  return {[store](const std::string& key, const std::string& value) {
            store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
          },
          [store](const std::string& key) {
            const auto value = store->get(key);
            return std::string(value.begin(), value.end());
          }};
}

// [distributed.communicators.groups] Each rank knows its groups, and the devices that it has used, in order.
namespace {

struct RankGroups {
  std::set<Communicators*> groups;
  std::vector<c10::DeviceIndex> devices;
};

std::mutex ranks_mutex;
auto& ranks = *new std::map<uint64_t, RankGroups>;  // outlives all groups

}  // namespace

// [distributed.communicators.create] A new group is at once known on the devices that its rank has used.
Communicators::Communicators(c10::intrusive_ptr<c10d::Store> store, int rank,
                             int size, uint64_t global_rank,
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

Communicators::~Communicators() {
  const std::lock_guard lock(ranks_mutex);
  auto ours = ranks.find(global_rank_);
  ours->second.groups.erase(this);
  if (ours->second.groups.empty()) ranks.erase(ours);
}

// [distributed.communicators.make] A group that finds no room now tries again when it is used.
std::shared_ptr<DeviceGroup> Communicators::on(c10::DeviceIndex index) {
  if (auto found = find(index)) return found;
  const std::lock_guard lock(ranks_mutex);
  RankGroups& ours = ranks.at(global_rank_);
  const bool is_new = std::find(ours.devices.begin(), ours.devices.end(),
                                index) == ours.devices.end();
  make(index);
  if (is_new) ours.devices.push_back(index);
  for (Communicators* group : ours.groups) group->tryToMake(index);
  return find(index);
}

void Communicators::tryToMake(c10::DeviceIndex index) {
  try {
    make(index);
  } catch (const c10::Error&) {
    // It is made again, or refused, when it is used.
  }
}

// [distributed.communicators.factory] The communicator of a device has a part of the group's store.
void Communicators::make(c10::DeviceIndex index) {
  if (find(index)) return;
  const DeviceScope scope(index);
  const auto& devices = ranks.at(global_rank_).devices;
  const auto number =
      std::find(devices.begin(), devices.end(), index) - devices.begin();
  CollectivesFactory make;
  {
    const std::lock_guard lock(factory().mutex);
    make = factory().make;
  }
  // The n-th device of a rank meets the n-th devices of its peers.
  auto made = std::make_shared<DeviceGroup>(
      make(rank_, size_, index,
           c10::make_intrusive<JoiningStore>(std::to_string(number), store_,
                                             patience_)),
      index);
  const std::lock_guard lock(mutex_);
  made_.emplace(index, std::move(made));
}

// [distributed.communicators.users] The watchdog's thread may ask while another thread makes one.
std::shared_ptr<DeviceGroup> Communicators::find(c10::DeviceIndex index) const {
  const std::lock_guard lock(mutex_);
  auto found = made_.find(index);
  return found == made_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<DeviceGroup>> Communicators::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DeviceGroup>> all;
  for (const auto& [index, group] : made_) all.push_back(group);
  return all;
}

void Communicators::setTimeout(std::chrono::milliseconds timeout) {
  patience_->timeout = timeout;
}

void Communicators::abort() noexcept {
  if (!is_leaving_) patience_->is_over = true;
  for (const auto& group : all()) group->collectives->abort();
}

void Communicators::clear() {
  std::map<c10::DeviceIndex, std::shared_ptr<DeviceGroup>> gone;
  const std::lock_guard lock(mutex_);
  gone.swap(made_);
}

// [-]
}  // namespace openreg
