// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/process_group.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>

namespace openreg {
namespace {

// [distributed.process-group.create] The global rank says which groups belong to the same rank.
uint64_t globalRank(int rank, const c10d::Backend::Options& options) {
  const auto& ranks = options.global_ranks_in_group;
  return ranks.empty() ? rank : ranks.at(rank);
}

c10::intrusive_ptr<ProcessGroupOrccl::Options> copyOf(
    const c10d::Backend::Options& options) {
  auto copy = c10::make_intrusive<ProcessGroupOrccl::Options>(options.timeout);
  copy->group_name = options.group_name;
  copy->group_desc = options.group_desc;
  copy->global_ranks_in_group = options.global_ranks_in_group;
  return copy;
}

}  // namespace

ProcessGroupOrccl::ProcessGroupOrccl(c10::intrusive_ptr<c10d::Store> store,
                                     int rank, int size,
                                     const c10d::Backend::Options& options)
    : Backend(rank, size),
      options_(copyOf(options)),
      store_(std::move(store)),
      communicators_(std::make_shared<CommunicatorMap>(
          store_, rank, size, globalRank(rank, options), options.timeout)),
      state_(std::make_shared<GroupState>(communicators_)) {
  init();
  watch(state_);
}

// [distributed.process-group.destroy] A forked child must not touch the memory that its parent shares with other ranks.
ProcessGroupOrccl::~ProcessGroupOrccl() {
  if (orIsForked()) {
    new std::shared_ptr<CommunicatorMap>(std::move(communicators_));
    new std::shared_ptr<GroupState>(std::move(state_));
    return;
  }
  const WithoutGil others_run;
  abort();
  communicators_->clear();
}

void ProcessGroupOrccl::abort() {
  if (orIsForked()) return;
  state_->end(c10d::ErrorType::COMM_ERROR,
              "orccl: the group was aborted; destroy it and make a new one.");
}

void ProcessGroupOrccl::shutdown() {
  if (orIsForked()) return;
  const WithoutGil others_run;
  state_->drain();
  if (state_->error() == c10d::ErrorType::SUCCESS) communicators_->leave();
  state_->end(c10d::ErrorType::COMM_ERROR,
              "orccl: the group was shut down; make a new one.");
  communicators_->clear();
}

// [distributed.process-group.settings] A change of the time limit applies to later operations.
void ProcessGroupOrccl::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
  communicators_->setTimeout(timeout);
}

void ProcessGroupOrccl::eagerConnectSingleDevice(at::Device device) {
  const WithoutGil others_run;
  NotForked();
  state_->check();
  communicators_->on(resolveDevice(device.index()));
}

// [distributed.process-group.split] A part of a group is a group with a prefix of its own in the store.
/// The other ranks may have another name for the part, and the store that is
/// passed has this name as its prefix. All count the splits of their group.
c10::intrusive_ptr<c10d::Backend> ProcessGroupOrccl::split(
    const c10::intrusive_ptr<c10d::Store>&, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const uint64_t number = ++splits_;
  const auto ours = std::find(ranks.begin(), ranks.end(), rank_);
  if (ours == ranks.end()) return nullptr;
  const auto own = copyOf(*options);
  own->global_ranks_in_group.clear();
  for (int rank : ranks) {
    own->global_ranks_in_group.push_back(globalRank(rank, *options_));
  }
  auto part = c10::make_intrusive<ProcessGroupOrccl>(
      c10::make_intrusive<c10d::PrefixStore>(
          c10::str("split/", number, "/", ranks.front()), store_->clone()),
      static_cast<int>(ours - ranks.begin()), static_cast<int>(ranks.size()),
      *own);
  part->setBoundDeviceId(bound_device_id_);
  if (bound_device_id_) part->eagerConnectSingleDevice(*bound_device_id_);
  return part;
}

// [distributed.process-group.request] A group that was aborted before it was connected has done nothing that a stream could wait for.
static void record(PendingOperation& operation,
                   const Communicator& communicator, orStream_t stream) {
  const orcclComm_t comm = communicator.comm();
  orcclRequest_t request = nullptr;
  if (!comm) return;
  checkOrccl(
      orcclRequestRecord(&request, operation.name.c_str(), comm, stream));
  operation.request.reset(request);
}

// [distributed.process-group.start] The communication stream first waits for the current stream, so the inputs are ready.
c10::intrusive_ptr<CollectiveWork> ProcessGroupOrccl::start(const Call& call,
                                                            ChooseStream choose,
                                                            Enqueue enqueue) {
  const WithoutGil others_run;
  NotForked();
  const std::lock_guard lock(mutex_);
  state_->check();
  const c10::Stream current = currentStream(call.device);
  TORCH_CHECK(!isCaptured(current), call.title,
              " cannot be captured in a graph, because the host takes part in "
              "it; call it between two graphs.");
  const DeviceScope scope(call.device);
  const auto own = communicators_->on(call.device);
  const c10::Stream stream = choose(*own);
  c10::Event ready(kDeviceType);
  ready.record(current);
  ready.block(stream);
  const c10::StreamGuard on_stream(stream);
  const at::AutoDispatchBelowADInplaceOrView not_differentiated;
  const bool is_collective = stream == own->collective_stream;
  auto work = describe(call, stream, current, is_collective);
  state_->add(work->operation());
  try {
    enqueue(*own->communicator, nativeStream(stream));
    record(*work->operation(), *own->communicator, nativeStream(stream));
  } catch (...) {
    state_->drop(work->operation());
    is_collective ? --collectives_ : --point_to_point_;
    throw;
  }
  work->markEnqueued();
  if (batch_ && is_collective) batch_->last_collective = work;
  return work;
}

// [distributed.process-group.describe] A message about an operation has its number, which is the same on all ranks for a collective.
c10::intrusive_ptr<CollectiveWork> ProcessGroupOrccl::describe(
    const Call& call, c10::Stream stream, c10::Stream caller,
    bool is_collective) {
  const uint64_t number = is_collective ? ++collectives_ : ++point_to_point_;
  const auto flag = is_timed_ ? c10::EventFlag::BACKEND_DEFAULT
                              : c10::EventFlag::PYTORCH_DEFAULT;
  const std::string name = c10::str(call.title + sizeof("orccl:") - 1,
                                    ", number ", number, " of rank ", rank_);
  auto operation = std::make_shared<PendingOperation>(PendingOperation{
      .name = name,
      .timeout = call.timeout == c10d::kUnsetTimeout ? options_->timeout
                                                     : call.timeout,
      .began = std::chrono::steady_clock::now(),
      .start = {},
      .end = c10::Event(kDeviceType, flag)});
  if (is_timed_) {
    operation->start.emplace(kDeviceType, flag);
    operation->start->record(stream);
  }
  return c10::make_intrusive<CollectiveWork>(
      rank_, call.type, call.title, call.inputs, call.outputs, number,
      std::move(operation), state_, stream, caller);
}

// [distributed.process-group.rank] A rank in an argument is a rank of this group.
void ProcessGroupOrccl::checkRank(const char* what, int64_t rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size_, what, " is rank ", rank,
                    "; this group has ", size_, " ranks, numbered from 0.");
}

// [-]
}  // namespace openreg
