// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"

#include "torch_openreg/chapters/distributed/hosts/host_jobs.h"
#include "torch_openreg/chapters/distributed/hosts/members.h"
#include "torch_openreg/common/check.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace openreg {
namespace {

// [distributed.hosts.class] A collective copies to pinned memory, lets a thread exchange bytes, and copies back.
class AcrossHosts final : public Communicator {
 public:
  AcrossHosts(int rank, int size, int device,
              c10::intrusive_ptr<JoiningStore> store);
  ~AcrossHosts() override;

  void barrier(orStream_t stream) override;
  void broadcast(orStream_t stream, void* data, size_t bytes, int root,
                 orcclDataType_t type) override;
  void allReduce(orStream_t stream, void* output, const void* input,
                 size_t count, orcclDataType_t type, orcclRedOp_t op) override;
  void reduce(orStream_t stream, void* output, const void* input, size_t count,
              orcclDataType_t type, orcclRedOp_t op, int root) override;
  void allGather(orStream_t stream, std::span<void* const> outputs,
                 const void* input, size_t bytes,
                 orcclDataType_t type) override;
  void reduceScatter(orStream_t stream, void* output,
                     std::span<const void* const> inputs, size_t count,
                     orcclDataType_t type, orcclRedOp_t op) override;
  void pointToPoint(orStream_t stream, std::span<const P2POp> ops) override;

  void abort(const std::string& reason) noexcept override;
  bool isAborted() const noexcept override;
  std::string problem() const override;
  std::string endedPeer() const override;
  orcclComm_t comm() const override;

  // [distributed.hosts.class.private] A stage is pinned memory for one call.
 private:
  /// `bytes` of a stage, from `at` on, and of the device.
  struct Copy {
    size_t at;
    const void* data;
    size_t bytes;
  };
  using Copies = std::vector<Copy>;
  using Addresses = std::vector<const void*>;  // of each rank's data
  /// What a thread of the host does with the stage.
  using Job = std::function<void(Network& network, const at::Tensor& stage)>;
  /// The same in a collective, whose messages have tags from `tag` on.
  using Part =
      std::function<void(Network& network, int tag, const at::Tensor& stage)>;
  /// What it does instead if all ranks have sent their data with the call.
  using ShortPart =
      std::function<void(const at::Tensor& stage, const Addresses& data)>;

  std::shared_ptr<Communicator> here() const;
  std::shared_ptr<Communicator> waitForHere();
  void collective(orStream_t stream, orcclCall_t call, size_t bytes,
                  const Copies& in, const Copies& out, Part part,
                  ShortPart short_part = nullptr);
  void perform(orStream_t stream, size_t bytes, const Copies& in,
               const Copies& out, Job job);
  void reduceTo(orStream_t stream, void* output, const void* input,
                size_t count, orcclCall_t call, int root);

  const int rank_, size_;
  const std::shared_ptr<Members> members_;
  const std::shared_ptr<HostJobs> jobs_;
  uint64_t calls_ = 0;
  std::map<std::pair<bool, int>, uint64_t> numbers_;
};

// [distributed.hosts.tags] Messages that are under way at the same time have different tags, and 0 is the goodbye.
constexpr int kTagsOfCall = 4;

int tagOf(bool is_transfer, uint64_t number) {
  const auto place = static_cast<int>(number % (1 << 27));
  return kTagsOfCall * (2 * place + (is_transfer ? 1 : 2));
}

at::Tensor bytesOf(const at::Tensor& stage, size_t at, size_t bytes) {
  return stage.narrow(0, static_cast<int64_t>(at), static_cast<int64_t>(bytes));
}

template <class T>
at::Tensor bytesOf(const T& value) {
  at::Tensor bytes = at::empty({sizeof(T)}, at::kByte);
  std::memcpy(bytes.data_ptr(), &value, sizeof(T));
  return bytes;
}

template <class T>
T valueOf(const at::Tensor& bytes) {
  T value;
  std::memcpy(&value, bytes.data_ptr(), sizeof(T));
  return value;
}

// [distributed.hosts.make] The thread that finds the other ranks starts at once.
AcrossHosts::AcrossHosts(int rank, int size, int device,
                         c10::intrusive_ptr<JoiningStore> store)
    : rank_(rank),
      size_(size),
      members_(std::make_shared<Members>(rank, size, device, std::move(store))),
      jobs_(
          std::make_shared<HostJobs>(device, [known = std::weak_ptr(members_)] {
            if (const auto members = known.lock()) members->abort("");
          })) {
  members_->find();
}

AcrossHosts::~AcrossHosts() {
  abort("");
  Network::leave(members_->network());
}

/// The communicator of a group of one host; otherwise null.
std::shared_ptr<Communicator> AcrossHosts::here() const {
  const auto [communicator, is_one_host] = members_->found();
  return is_one_host ? communicator : nullptr;
}

std::shared_ptr<Communicator> AcrossHosts::waitForHere() {
  const auto [communicator, is_one_host] = members_->wait();
  return is_one_host ? communicator : nullptr;
}

// [distributed.hosts.perform] The last command drops the stage, when the copies have run.
void hold(orStream_t stream, const at::Tensor& tensor) {
  auto held = std::make_unique<at::Tensor>(tensor);
  check(orLaunchHostFunc(
      stream, [](void* data) { delete static_cast<at::Tensor*>(data); },
      held.get()));
  held.release();
}

void AcrossHosts::perform(orStream_t stream, size_t bytes, const Copies& in,
                          const Copies& out, Job job) {
  constexpr size_t kFlagBytes = 64;
  const auto pinned =
      at::empty({static_cast<int64_t>(kFlagBytes + bytes)},
                at::TensorOptions(at::kByte).pinned_memory(true));
  const at::Tensor flag = pinned.narrow(0, 0, kFlagBytes).zero_();
  const at::Tensor stage = bytesOf(pinned, kFlagBytes, bytes);
  char* const begin = static_cast<char*>(pinned.data_ptr()) + kFlagBytes;
  try {
    for (const Copy& copy : in) {
      if (!copy.bytes) continue;
      check(orMemcpyAsync(begin + copy.at, copy.data, copy.bytes,
                          orMemcpyDeviceToHost, stream));
    }
    jobs_->run(stream, flag,
               [network = members_->network(), stage, job = std::move(job)] {
                 job(*network, stage);
               });
    for (const Copy& copy : out) {
      if (!copy.bytes) continue;
      check(orMemcpyAsync(const_cast<void*>(copy.data), begin + copy.at,
                          copy.bytes, orMemcpyHostToDevice, stream));
    }
    hold(stream, pinned);
  } catch (...) {  // The peers would wait for the rest.
    abort("");
    throw;
  }
}

// [distributed.hosts.call] The message of a call has room for its data, because a short call costs as much as its messages.
constexpr size_t kShortBytes = 4096;

struct CallMessage {
  orcclCall_t call;
  alignas(64) char data[kShortBytes];
};

at::Tensor newCallMessage() {
  return at::empty({sizeof(CallMessage)}, at::kByte);
}

CallMessage& callIn(const at::Tensor& message) {
  return *static_cast<CallMessage*>(message.data_ptr());
}

// [distributed.hosts.collective] Before their data, or with it, the ranks exchange what they have called.
void AcrossHosts::collective(orStream_t stream, orcclCall_t call, size_t bytes,
                             const Copies& in, const Copies& out, Part part,
                             ShortPart short_part) {
  if (isAborted()) return;
  call.number = ++calls_;
  const int tag = tagOf(false, calls_);
  const bool is_short = short_part && call.bytes <= kShortBytes;
  const size_t at = in.empty() ? 0 : in.front().at;
  const size_t length = in.empty() || !is_short ? 0 : call.bytes;
  perform(stream, bytes, in, out,
          [=, rank = rank_, size = size_](Network& network,
                                          const at::Tensor& stage) {
            std::vector<at::Tensor> messages(size);
            for (at::Tensor& message : messages) message = newCallMessage();
            CallMessage& own = callIn(messages[rank]);
            own.call = call;
            std::memcpy(own.data, bytesOf(stage, at, length).data_ptr(),
                        length);
            network.exchangeWithAll(
                tag, [&](int) { return messages[rank]; },
                [&](int peer) { return messages[peer]; });
            std::vector<orcclCall_t> calls;
            Addresses data;
            for (const at::Tensor& message : messages) {
              calls.push_back(callIn(message).call);
              data.push_back(callIn(message).data);
            }
            checkOrccl(orcclCompareCalls(calls.data(), size));
            is_short ? short_part(stage, data) : part(network, tag + 1, stage);
          });
}

void AcrossHosts::barrier(orStream_t stream) {
  if (const auto here = waitForHere()) return here->barrier(stream);
  // All ranks have come when each one has the calls of all others.
  collective(stream, {}, 0, {}, {}, [](Network&, int, const at::Tensor&) {});
}

// [distributed.hosts.broadcast] The root sends to each of the others.
void AcrossHosts::broadcast(orStream_t stream, void* data, size_t bytes,
                            int root, orcclDataType_t type) {
  if (const auto here = waitForHere()) {
    return here->broadcast(stream, data, bytes, root, type);
  }
  const orcclCall_t call{orcclFuncBroadcast, type, orcclSum, root, bytes, 0};
  const Copies whole{{0, data, bytes}};
  const bool is_root = rank_ == root;
  collective(
      stream, call, bytes, is_root ? whole : Copies{},
      is_root ? Copies{} : whole,
      [=](Network& network, int tag, const at::Tensor& stage) {
        if (!stage.numel()) return;
        const auto nothing = [](int) { return at::Tensor(); };
        const auto ours = [&](int) { return stage; };
        const auto from_root = [&](int peer) {
          return peer == root ? stage : at::Tensor();
        };
        if (is_root) {
          network.exchangeWithAll(tag, ours, nothing);
        } else {
          network.exchangeWithAll(tag, nothing, from_root);
        }
      },
      [=](const at::Tensor& stage, const Addresses& data) {
        std::memcpy(stage.data_ptr(), data[root], bytes);
      });
}

// [distributed.hosts.all-gather] Each rank sends its part to each of the others.
void AcrossHosts::allGather(orStream_t stream, std::span<void* const> outputs,
                            const void* input, size_t bytes,
                            orcclDataType_t type) {
  if (const auto here = waitForHere()) {
    return here->allGather(stream, outputs, input, bytes, type);
  }
  Copies out;
  for (int rank = 0; rank < size_; ++rank) {
    out.push_back({rank * bytes, outputs[rank], bytes});
  }
  collective(
      stream, {orcclFuncAllGather, type, orcclSum, 0, bytes, 0}, size_ * bytes,
      {{rank_ * bytes, input, bytes}}, out,
      [=, rank = rank_](Network& network, int tag, const at::Tensor& stage) {
        if (!bytes) return;
        const auto part = [&](int peer) {
          return bytesOf(stage, peer * bytes, bytes);
        };
        network.exchangeWithAll(
            tag, [&](int) { return part(rank); }, part);
      },
      [=, size = size_](const at::Tensor& stage, const Addresses& data) {
        for (int rank = 0; rank < size; ++rank) {
          std::memcpy(bytesOf(stage, rank * bytes, bytes).data_ptr(),
                      data[rank], bytes);
        }
      });
}

// [distributed.hosts.reduce.part] Each rank reduces its part of all numbers, in the order of the ranks and as the devices do.
/// The stage has a part of `count` numbers for each rank. That of this rank
/// becomes the reduction.
void reducePart(Network& network, int tag, const at::Tensor& stage, int rank,
                int size, size_t count, const orcclCall_t& call) {
  if (!count) return;
  const size_t bytes = count * orcclTypeSize(call.datatype);
  const auto part = [&](const at::Tensor& parts, int peer) {
    return bytesOf(parts, peer * bytes, bytes);
  };
  const at::Tensor theirs = at::empty({stage.numel()}, at::kByte);
  network.exchangeWithAll(
      tag, [&](int peer) { return part(stage, peer); },
      [&](int peer) { return part(theirs, peer); });
  std::vector<const void*> inputs;
  for (int peer = 0; peer < size; ++peer) {
    inputs.push_back(part(peer == rank ? stage : theirs, peer).data_ptr());
  }
  checkOrccl(orcclReduceLocal(inputs.data(), size, part(stage, rank).data_ptr(),
                              count, call.datatype, call.op));
}

// [distributed.hosts.reduce-scatter] A part of the stage is what one rank wants.
void AcrossHosts::reduceScatter(orStream_t stream, void* output,
                                std::span<const void* const> inputs,
                                size_t count, orcclDataType_t type,
                                orcclRedOp_t op) {
  if (const auto here = waitForHere()) {
    return here->reduceScatter(stream, output, inputs, count, type, op);
  }
  const size_t bytes = count * orcclTypeSize(type);
  const orcclCall_t call{orcclFuncReduceScatter, type, op, 0, bytes, 0};
  Copies in;
  for (int rank = 0; rank < size_; ++rank) {
    in.push_back({rank * bytes, inputs[rank], bytes});
  }
  collective(stream, call, size_ * bytes, in, {{rank_ * bytes, output, bytes}},
             [=, rank = rank_, size = size_](Network& network, int tag,
                                             const at::Tensor& stage) {
               reducePart(network, tag, stage, rank, size, count, call);
             });
}

// [distributed.hosts.reduce] The ranks divide the numbers among them, reduce, and send the results to those who want them.
/// A `root` of -1 is every rank.
void AcrossHosts::reduceTo(orStream_t stream, void* output, const void* input,
                           size_t count, orcclCall_t call, int root) {
  const size_t width = orcclTypeSize(call.datatype);
  const size_t part = (count + size_ - 1) / size_;
  call.bytes = count * width;
  const bool is_target = root < 0 || root == rank_;
  const Copies in{{0, input, call.bytes}};
  const Copies out{{0, output, is_target ? call.bytes : 0}};
  collective(
      stream, call, size_ * part * width, in, out,
      [=, rank = rank_, size = size_](Network& network, int tag,
                                      const at::Tensor& stage) {
        // The parts have one size, so the last one may have a rest.
        stage.narrow(0, call.bytes, stage.numel() - call.bytes).zero_();
        reducePart(network, tag, stage, rank, size, part, call);
        if (!part) return;
        const auto bytes = [&](bool is_wanted, int from) {
          return is_wanted ? bytesOf(stage, from * part * width, part * width)
                           : at::Tensor();
        };
        network.exchangeWithAll(
            tag + 1,
            [&](int peer) { return bytes(root < 0 || root == peer, rank); },
            [&](int peer) { return bytes(is_target, peer); });
      },
      [=, size = size_](const at::Tensor& stage, const Addresses& data) {
        checkOrccl(orcclReduceLocal(data.data(), size, stage.data_ptr(), count,
                                    call.datatype, call.op));
      });
}

// [distributed.hosts.reduce.calls] One call wants the results everywhere, and the other at the root.
void AcrossHosts::allReduce(orStream_t stream, void* output, const void* input,
                            size_t count, orcclDataType_t type,
                            orcclRedOp_t op) {
  if (const auto here = waitForHere()) {
    return here->allReduce(stream, output, input, count, type, op);
  }
  reduceTo(stream, output, input, count,
           {orcclFuncAllReduce, type, op, 0, 0, 0}, -1);
}

void AcrossHosts::reduce(orStream_t stream, void* output, const void* input,
                         size_t count, orcclDataType_t type, orcclRedOp_t op,
                         int root) {
  if (const auto here = waitForHere()) {
    return here->reduce(stream, output, input, count, type, op, root);
  }
  reduceTo(stream, output, input, count,
           {orcclFuncReduce, type, op, root, 0, 0}, root);
}

// [distributed.hosts.transfer.exchange] Both ranks say what they expect, and only then do the data follow.
/// A send or receive with another rank, its place in the stage, and what both
/// ranks must agree on.
struct Shipment {
  P2POp op;
  size_t at;
  orcclCall_t call;
};

void ship(Network& network, const std::vector<Shipment>& shipments, int rank,
          const at::Tensor& stage) {
  std::vector<Message> calls, data;
  for (const auto& [op, at, call] : shipments) {
    const int tag = tagOf(true, call.number);
    calls.push_back({true, op.peer, tag + !op.is_send, bytesOf(call)});
    calls.push_back({false, op.peer, tag + op.is_send, bytesOf(call)});
    if (op.bytes) {
      data.push_back(
          {op.is_send, op.peer, tag + 2, bytesOf(stage, at, op.bytes)});
    }
  }
  network.exchange(calls);
  for (size_t i = 0; i < shipments.size(); ++i) {
    const auto& [op, at, ours] = shipments[i];
    const auto theirs = valueOf<orcclCall_t>(calls[2 * i + 1].bytes);
    checkOrccl(op.is_send
                   ? orcclCompareSendRecv(rank, &ours, op.peer, &theirs)
                   : orcclCompareSendRecv(op.peer, &theirs, rank, &ours));
  }
  network.exchange(data);
}

// [distributed.hosts.transfer.self] What a rank sends to itself never leaves its device.
void copyToSelf(orStream_t stream, std::span<const P2POp> ops, int rank) {
  std::vector<P2POp> sends, receives;
  for (const P2POp& op : ops) {
    if (op.peer == rank) (op.is_send ? sends : receives).push_back(op);
  }
  TORCH_CHECK_VALUE(sends.size() == receives.size(), "Rank ", rank,
                    " has in one call ", sends.size(), " sends to itself and ",
                    receives.size(), " receives from itself.");
  for (size_t i = 0; i < sends.size(); ++i) {
    TORCH_CHECK_VALUE(sends[i].bytes == receives[i].bytes, "Rank ", rank,
                      " sends ", sends[i].bytes,
                      " bytes to itself, and receives ", receives[i].bytes,
                      ".");
  }
  for (size_t i = 0; i < sends.size(); ++i) {
    if (!sends[i].bytes) continue;
    check(orMemcpyAsync(receives[i].data, sends[i].data, sends[i].bytes,
                        orMemcpyDeviceToDevice, stream));
  }
}

// [distributed.hosts.transfer] Sends and receives of one call share a stage.
void AcrossHosts::pointToPoint(orStream_t stream, std::span<const P2POp> ops) {
  if (const auto here = waitForHere()) return here->pointToPoint(stream, ops);
  if (isAborted()) return;
  copyToSelf(stream, ops, rank_);
  size_t bytes = 0;
  Copies in, out;
  std::vector<Shipment> shipments;
  for (const P2POp& op : ops) {
    if (op.peer == rank_) continue;
    (op.is_send ? in : out).push_back({bytes, op.data, op.bytes});
    const uint64_t number = ++numbers_[{op.is_send, op.peer}];
    shipments.push_back(
        {op,
         bytes,
         {orcclFuncSendRecv, op.type, orcclSum, 0, op.bytes, number}});
    bytes += op.bytes;
  }
  if (shipments.empty()) return;
  perform(stream, bytes, in, out,
          [rank = rank_, shipments = std::move(shipments)](
              Network& network, const at::Tensor& stage) {
            ship(network, shipments, rank, stage);
          });
}

// [distributed.hosts.end] A rank that gives up closes its connections at once, so that the others notice.
void AcrossHosts::abort(const std::string& reason) noexcept {
  members_->abort(reason);
  const bool was_busy = jobs_->abort();
  if (was_busy || !jobs_->problem().empty()) members_->network()->abort();
}

bool AcrossHosts::isAborted() const noexcept {
  const auto here = this->here();
  return jobs_->isAborted() || (here && here->isAborted());
}

std::string AcrossHosts::problem() const {
  const auto here = this->here();
  return here ? here->problem() : jobs_->problem();
}

std::string AcrossHosts::endedPeer() const {
  const auto here = this->here();
  return here ? here->endedPeer() : "";
}

orcclComm_t AcrossHosts::comm() const {
  const auto communicator = members_->found().communicator;
  return communicator ? communicator->comm() : nullptr;
}

// [-]
}  // namespace

// [distributed.hosts.factory] The process group asks this function for every communicator.
std::shared_ptr<Communicator> makeAcrossHosts(
    int rank, int size, int device, c10::intrusive_ptr<JoiningStore> store) {
  return std::make_shared<AcrossHosts>(rank, size, device, std::move(store));
}

// [-]
}  // namespace openreg
