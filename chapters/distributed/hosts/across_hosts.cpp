// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/distributed/communicator/reduce.h"
#include "torch_openreg/chapters/distributed/communicator/signature.h"
#include "torch_openreg/chapters/distributed/communicator/transfer.h"
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
class AcrossHosts final : public Collectives {
 public:
  AcrossHosts(int rank, int size, int device,
              c10::intrusive_ptr<JoiningStore> store);
  ~AcrossHosts() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void barrier(orStream_t stream) override;
  void broadcast(orStream_t stream, void* data, size_t bytes, int root,
                 NumberType type) override;
  void allReduce(orStream_t stream, void* output, const void* input,
                 size_t count, NumberType type, Reduction reduction) override;
  void reduce(orStream_t stream, void* output, const void* input, size_t count,
              NumberType type, Reduction reduction, int root) override;
  void allGather(orStream_t stream, std::span<void* const> outputs,
                 const void* input, size_t bytes, NumberType type) override;
  void reduceScatter(orStream_t stream, void* output,
                     std::span<const void* const> inputs, size_t count,
                     NumberType type, Reduction reduction) override;
  void transfer(orStream_t stream,
                std::span<const Transfer> transfers) override;
  orStream_t transferStream(bool is_send, int peer) override;

  void abort() noexcept override;
  bool isAborted() const noexcept override;
  std::shared_ptr<const std::atomic<bool>> abortedFlag() const override;
  std::string problem() const override;
  std::string endedPeer() const override;

  // [distributed.hosts.class.private] A stage is pinned memory for one call.
 private:
  /// `bytes` of a stage, from `at` on, and of the device.
  struct Copy {
    size_t at;
    const void* data;
    size_t bytes;
  };
  using Copies = std::vector<Copy>;
  /// What a thread of the host does with the stage.
  using Job = std::function<void(Network& network, const at::Tensor& stage)>;
  /// The same in a collective, whose messages have tags from `tag` on.
  using Part =
      std::function<void(Network& network, int tag, const at::Tensor& stage)>;

  std::shared_ptr<Collectives> here();
  void collective(orStream_t stream, Signature signature, size_t bytes,
                  const Copies& in, const Copies& out, Part part);
  void perform(orStream_t stream, size_t bytes, const Copies& in,
               const Copies& out, Job job);
  void reduceTo(orStream_t stream, void* output, const void* input,
                size_t count, Signature signature, int root);

  const int rank_, size_, device_;
  const std::shared_ptr<Members> members_;
  const std::shared_ptr<HostJobs> jobs_;
  uint64_t calls_ = 0;
  std::map<std::pair<bool, int>, uint64_t> transfers_;
  std::map<std::pair<bool, int>, orStream_t> streams_;
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
      device_(device),
      members_(std::make_shared<Members>(rank, size, device, std::move(store))),
      jobs_(std::make_shared<HostJobs>(device)) {
  members_->find();
}

AcrossHosts::~AcrossHosts() {
  abort();
  for (const auto& [key, stream] : streams_) orStreamDestroy(stream);
  Network::leave(members_->network());
}

std::shared_ptr<Collectives> AcrossHosts::here() {
  return members_->waitForCommunicator();
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
    abort();
    throw;
  }
}

// [distributed.hosts.collective] Before their data, the ranks exchange what they have called.
void AcrossHosts::collective(orStream_t stream, Signature signature,
                             size_t bytes, const Copies& in, const Copies& out,
                             Part part) {
  if (isAborted()) return;
  checkNotCaptured(stream);
  signature.call = ++calls_;
  const int tag = tagOf(false, calls_);
  perform(stream, bytes, in, out,
          [=, size = size_, part = std::move(part)](Network& network,
                                                    const at::Tensor& stage) {
            const at::Tensor own = bytesOf(signature);
            std::vector<at::Tensor> all(size);
            for (at::Tensor& each : all) each = bytesOf(signature);
            network.exchangeWithAll(
                tag, [&](int) { return own; },
                [&](int peer) { return all[peer]; });
            std::vector<Signature> signatures;
            for (const at::Tensor& each : all) {
              signatures.push_back(valueOf<Signature>(each));
            }
            const std::string problem = findDisagreement(signatures);
            TORCH_CHECK(problem.empty(), problem);
            part(network, tag + 1, stage);
          });
}

void AcrossHosts::barrier(orStream_t stream) {
  if (const auto here = this->here()) return here->barrier(stream);
  // All ranks have come when each one has the calls of all others.
  collective(stream, {.operation = Operation::barrier}, 0, {}, {},
             [](Network&, int, const at::Tensor&) {});
}

// [distributed.hosts.broadcast] The root sends to each of the others.
void AcrossHosts::broadcast(orStream_t stream, void* data, size_t bytes,
                            int root, NumberType type) {
  checkRank("root", root);
  if (const auto here = this->here()) {
    return here->broadcast(stream, data, bytes, root, type);
  }
  const Signature signature{.operation = Operation::broadcast,
                            .type = type,
                            .root = root,
                            .bytes = bytes};
  const Copies whole{{0, data, bytes}};
  const bool is_root = rank_ == root;
  collective(stream, signature, bytes, is_root ? whole : Copies{},
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
             });
}

// [distributed.hosts.all-gather] Each rank sends its part to each of the others.
void AcrossHosts::allGather(orStream_t stream, std::span<void* const> outputs,
                            const void* input, size_t bytes, NumberType type) {
  checkParts("all_gather", "outputs", outputs.size());
  if (const auto here = this->here()) {
    return here->allGather(stream, outputs, input, bytes, type);
  }
  Copies out;
  for (int rank = 0; rank < size_; ++rank) {
    out.push_back({rank * bytes, outputs[rank], bytes});
  }
  collective(
      stream,
      {.operation = Operation::all_gather, .type = type, .bytes = bytes},
      size_ * bytes, {{rank_ * bytes, input, bytes}}, out,
      [=, rank = rank_](Network& network, int tag, const at::Tensor& stage) {
        if (!bytes) return;
        const auto part = [&](int peer) {
          return bytesOf(stage, peer * bytes, bytes);
        };
        network.exchangeWithAll(
            tag, [&](int) { return part(rank); }, part);
      });
}

// [distributed.hosts.reduce.part] Each rank reduces its part of all numbers, in the order of the ranks and as the devices do.
/// The stage has a part of `count` numbers for each rank. That of this rank
/// becomes the reduction.
void reducePart(Network& network, int tag, const at::Tensor& stage, int rank,
                int size, size_t count, const Signature& signature) {
  if (!count) return;
  const size_t bytes = count * sizeOf(signature.type);
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
  reduceNumbers(part(stage, rank).data_ptr(), inputs, count, signature.type,
                signature.reduction);
}

// [distributed.hosts.reduce-scatter] A part of the stage is what one rank wants.
void AcrossHosts::reduceScatter(orStream_t stream, void* output,
                                std::span<const void* const> inputs,
                                size_t count, NumberType type,
                                Reduction reduction) {
  checkParts("reduce_scatter", "inputs", inputs.size());
  checkReduction(type, reduction);
  if (const auto here = this->here()) {
    return here->reduceScatter(stream, output, inputs, count, type, reduction);
  }
  const size_t bytes = count * sizeOf(type);
  const Signature signature{.operation = Operation::reduce_scatter,
                            .type = type,
                            .reduction = reduction,
                            .bytes = bytes};
  Copies in;
  for (int rank = 0; rank < size_; ++rank) {
    in.push_back({rank * bytes, inputs[rank], bytes});
  }
  collective(stream, signature, size_ * bytes, in,
             {{rank_ * bytes, output, bytes}},
             [=, rank = rank_, size = size_](Network& network, int tag,
                                             const at::Tensor& stage) {
               reducePart(network, tag, stage, rank, size, count, signature);
             });
}

// [distributed.hosts.reduce] The ranks divide the numbers among them, reduce, and send the results to those who want them.
/// A `root` of -1 is every rank.
void AcrossHosts::reduceTo(orStream_t stream, void* output, const void* input,
                           size_t count, Signature signature, int root) {
  const size_t width = sizeOf(signature.type);
  const size_t part = (count + size_ - 1) / size_;
  signature.bytes = count * width;
  const bool is_target = root < 0 || root == rank_;
  const Copies in{{0, input, signature.bytes}};
  const Copies out{{0, output, is_target ? signature.bytes : 0}};
  collective(
      stream, signature, size_ * part * width, in, out,
      [=, rank = rank_, size = size_](Network& network, int tag,
                                      const at::Tensor& stage) {
        // The parts have one size, so the last one may have a rest.
        stage.narrow(0, signature.bytes, stage.numel() - signature.bytes)
            .zero_();
        reducePart(network, tag, stage, rank, size, part, signature);
        if (!part) return;
        const auto bytes = [&](bool is_wanted, int from) {
          return is_wanted ? bytesOf(stage, from * part * width, part * width)
                           : at::Tensor();
        };
        network.exchangeWithAll(
            tag + 1,
            [&](int peer) { return bytes(root < 0 || root == peer, rank); },
            [&](int peer) { return bytes(is_target, peer); });
      });
}

// [distributed.hosts.reduce.calls] One call wants the results everywhere, and the other at the root.
void AcrossHosts::allReduce(orStream_t stream, void* output, const void* input,
                            size_t count, NumberType type,
                            Reduction reduction) {
  checkReduction(type, reduction);
  if (const auto here = this->here()) {
    return here->allReduce(stream, output, input, count, type, reduction);
  }
  reduceTo(stream, output, input, count,
           {.operation = Operation::all_reduce,
            .type = type,
            .reduction = reduction},
           -1);
}

void AcrossHosts::reduce(orStream_t stream, void* output, const void* input,
                         size_t count, NumberType type, Reduction reduction,
                         int root) {
  checkRank("root", root);
  checkReduction(type, reduction);
  if (const auto here = this->here()) {
    return here->reduce(stream, output, input, count, type, reduction, root);
  }
  reduceTo(stream, output, input, count,
           {.operation = Operation::reduce,
            .type = type,
            .reduction = reduction,
            .root = root},
           root);
}

// [distributed.hosts.transfer.exchange] Both ranks say what they expect, and only then do the data follow.
/// A transfer with another rank, its place in the stage, and its number among
/// those of its direction.
struct Shipment {
  Transfer transfer;
  size_t at;
  uint64_t number;
};

void ship(Network& network, const std::vector<Shipment>& shipments, int rank,
          const at::Tensor& stage) {
  std::vector<Message> parcels, data;
  for (const auto& [transfer, at, number] : shipments) {
    const auto [is_send, peer, address, bytes, type] = transfer;
    const int tag = tagOf(true, number);
    parcels.push_back(
        {true, peer, tag + !is_send, bytesOf(Parcel{bytes, type})});
    parcels.push_back({false, peer, tag + is_send, bytesOf(Parcel{})});
    if (bytes) {
      data.push_back({is_send, peer, tag + 2, bytesOf(stage, at, bytes)});
    }
  }
  network.exchange(parcels);
  for (size_t i = 0; i < shipments.size(); ++i) {
    const auto& [transfer, at, number] = shipments[i];
    const int peer = transfer.peer;
    const Parcel ours{transfer.bytes, transfer.type};
    const auto theirs = valueOf<Parcel>(parcels[2 * i + 1].bytes);
    const std::string problem =
        transfer.is_send ? findDisagreement(rank, ours, peer, theirs, number)
                         : findDisagreement(peer, theirs, rank, ours, number);
    TORCH_CHECK(problem.empty(), problem);
  }
  network.exchange(data);
}

// [distributed.hosts.transfer] A transfer of this rank with itself ends where it began, in the stage.
void AcrossHosts::transfer(orStream_t stream,
                           std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    checkPeer(transfer.is_send, transfer.peer);
  }
  if (const auto here = this->here()) return here->transfer(stream, transfers);
  checkTransfersToSelf(rank_, transfers);
  if (isAborted()) return;
  checkNotCaptured(stream);
  size_t bytes = 0;
  Copies in, out;
  std::vector<Shipment> shipments;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == rank_) continue;
    (transfer.is_send ? in : out)
        .push_back({bytes, transfer.data, transfer.bytes});
    shipments.push_back(
        {transfer, bytes, ++transfers_[{transfer.is_send, transfer.peer}]});
    bytes += transfer.bytes;
  }
  const auto receives = selectTransfers(transfers, false, rank_);
  for (size_t i = 0; i < receives.size(); ++i) {
    const Transfer send = selectTransfers(transfers, true, rank_)[i];
    in.push_back({bytes, send.data, send.bytes});
    out.push_back({bytes, receives[i].data, send.bytes});
    bytes += send.bytes;
  }
  perform(stream, bytes, in, out,
          [rank = rank_, shipments = std::move(shipments)](
              Network& network, const at::Tensor& stage) {
            ship(network, shipments, rank, stage);
          });
}

// [distributed.hosts.transfer.stream] A direction of a pair has a stream of its own.
orStream_t AcrossHosts::transferStream(bool is_send, int peer) {
  checkPeer(is_send, peer);
  if (const auto here = this->here()) {
    return here->transferStream(is_send, peer);
  }
  orStream_t& stream = streams_[{is_send, peer}];
  if (!stream) {
    const DeviceScope scope(static_cast<c10::DeviceIndex>(device_));
    check(orStreamCreate(&stream));
  }
  return stream;
}

// [distributed.hosts.end] A rank that gives up closes its connections at once, so that the others notice.
void AcrossHosts::abort() noexcept {
  members_->abort();
  const bool was_busy = jobs_->abort();
  if (was_busy || !jobs_->problem().empty()) members_->network()->abort();
}

bool AcrossHosts::isAborted() const noexcept {
  const auto here = members_->communicator();
  return jobs_->isAborted() || (here && here->isAborted());
}

std::shared_ptr<const std::atomic<bool>> AcrossHosts::abortedFlag() const {
  if (const auto here = members_->communicator()) return here->abortedFlag();
  return {jobs_, &jobs_->abortedFlag()};
}

std::string AcrossHosts::problem() const {
  const auto here = members_->communicator();
  return here ? here->problem() : jobs_->problem();
}

std::string AcrossHosts::endedPeer() const {
  const auto here = members_->communicator();
  return here ? here->endedPeer() : "";
}

// [-]
}  // namespace

// [distributed.hosts.factory] The process group asks this function for every communicator.
std::shared_ptr<Collectives> makeAcrossHosts(
    int rank, int size, int device, c10::intrusive_ptr<JoiningStore> store) {
  return std::make_shared<AcrossHosts>(rank, size, device, std::move(store));
}

// [-]
}  // namespace openreg
