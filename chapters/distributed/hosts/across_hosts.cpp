// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"

#include "torch_openreg/chapters/distributed/hosts/host_jobs.h"
#include "torch_openreg/chapters/distributed/hosts/members.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/common/waiting.h"

#include <array>
#include <cstring>
#include <map>
#include <thread>

namespace openreg {
namespace {

// [distributed.hosts.class] A collective copies to pinned memory, lets a thread exchange bytes, and copies back.
class AcrossHosts final : public Communicator {
 public:
  AcrossHosts(int rank, int size, int device,
              c10::intrusive_ptr<JoiningStore> store);
  ~AcrossHosts() override;

  void collective(orStream_t stream, const Collective& what) override;
  void pointToPoint(orStream_t stream, std::span<const P2POp> ops) override;

  void abort(const std::string& reason) noexcept override;
  std::optional<std::string> problem() const override;
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
  /// What a thread of the host does with the stage.
  using Job = std::function<void(Network& network, const at::Tensor& stage)>;

  void perform(orStream_t stream, size_t bytes, const Copies& in,
               const Copies& out, Job job);

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

// [distributed.hosts.make] The thread that finds the other ranks starts at once.
AcrossHosts::AcrossHosts(int rank, int size, int device,
                         c10::intrusive_ptr<JoiningStore> store)
    : rank_(rank),
      size_(size),
      members_(std::make_shared<Members>(rank, size, device, std::move(store))),
      jobs_(std::make_shared<HostJobs>(
          [known = std::weak_ptr(members_)](const std::string& problem) {
            if (const auto members = known.lock()) {
              members->abort(problem.empty() ? "" : "orccl: " + problem);
            }
          })) {
  members_->find();
}

AcrossHosts::~AcrossHosts() {
  abort("");
  Network::leave(members_->network());
}

// [distributed.hosts.perform] The cache reuses the stage when the stream is done with it, even if the call fails halfway.
void AcrossHosts::perform(orStream_t stream, size_t bytes, const Copies& in,
                          const Copies& out, Job job) try {
  constexpr size_t kFlagBytes = 64;
  const auto pinned =
      at::empty({static_cast<int64_t>(kFlagBytes + bytes)},
                at::TensorOptions(at::kByte).pinned_memory(true));
  hostAllocator().record_event(pinned.data_ptr(),
                               pinned.storage().data_ptr().get_context(),
                               currentStream(-1));
  const at::Tensor flag = pinned.narrow(0, 0, kFlagBytes).zero_();
  const at::Tensor stage = bytesOf(pinned, kFlagBytes, bytes);
  char* const begin = static_cast<char*>(pinned.data_ptr()) + kFlagBytes;
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
} catch (...) {  // The peers would wait for the rest.
  abort("");
  throw;
}

// [distributed.hosts.call] The message of a call may have room for its data, because a short call costs as much as its messages.
constexpr size_t kShortBytes = 4096, kCallBytes = 64;
static_assert(sizeof(orcclCall_t) <= kCallBytes);

at::Tensor messageOf(const orcclCall_t& call, size_t room) {
  at::Tensor message =
      at::zeros({static_cast<int64_t>(kCallBytes + room)}, at::kByte);
  std::memcpy(message.data_ptr(), &call, sizeof(call));
  return message;
}

const orcclCall_t& callIn(const at::Tensor& message) {
  return *static_cast<const orcclCall_t*>(message.data_ptr());
}

char* dataIn(const at::Tensor& message) {
  return static_cast<char*>(message.data_ptr()) + kCallBytes;
}

// [distributed.hosts.layout] Each rank owns a part of the stage: what it contributes, or what it reduces.
struct Layout {
  Layout(const orcclCall_t& call, int rank, int size)
      : call(call), rank(rank), size(size), part(call.bytes) {
    reduces = call.func == orcclFuncAllReduce || call.func == orcclFuncReduce ||
              call.func == orcclFuncReduceScatter;
    is_divided = reduces && call.func != orcclFuncReduceScatter;
    if (is_divided) part = (count() + size - 1) / size * width();
  }
  size_t width() const { return orcclTypeSize(call.datatype); }
  size_t count() const { return call.bytes / width(); }
  size_t total() const { return placeOf(size - 1) + part; }
  size_t placeOf(int owner) const {
    return call.func == orcclFuncBroadcast ? 0 : owner * part;
  }
  /// Whether `receiver` needs the part of `owner` when all parts are done.
  bool wants(int receiver, int owner) const {
    if (call.func == orcclFuncBroadcast) return owner == call.root;
    if (call.func == orcclFuncReduce) return receiver == call.root;
    return call.func == orcclFuncAllReduce || call.func == orcclFuncAllGather;
  }

  /// Whether all ranks' data fit into the messages of the call.
  bool isShort() const {
    return call.func != orcclFuncReduceScatter && call.bytes <= kShortBytes;
  }

  orcclCall_t call;
  int rank, size;
  size_t part;      ///< bytes of a rank's part
  bool reduces;     ///< and then each rank reduces its part
  bool is_divided;  ///< the parts are those of one buffer
};

// [distributed.hosts.reduce] Each rank reduces its part of all numbers, in the order of the ranks and as the devices do.
void reducePart(Network& network, int tag, const at::Tensor& stage,
                const Layout& layout) {
  const auto part = [&](const at::Tensor& parts, int owner) {
    return bytesOf(parts, layout.placeOf(owner), layout.part);
  };
  if (layout.is_divided) {
    // The parts have one size, so the last one may have a rest.
    const size_t rest = stage.numel() - layout.call.bytes;
    bytesOf(stage, layout.call.bytes, rest).zero_();
  }
  const at::Tensor theirs = at::empty({stage.numel()}, at::kByte);
  network.exchangeWithAll(
      tag, [&](int peer) { return part(stage, peer); },
      [&](int peer) { return part(theirs, peer); });
  std::vector<const void*> inputs;
  for (int peer = 0; peer < layout.size; ++peer) {
    inputs.push_back(
        part(peer == layout.rank ? stage : theirs, peer).data_ptr());
  }
  checkOrccl(orcclReduceLocal(
      inputs.data(), layout.size, part(stage, layout.rank).data_ptr(),
      layout.part / layout.width(), layout.call.datatype, layout.call.op));
}

// [distributed.hosts.exchange] After the reduction, if there is one, each part goes to the ranks that want it.
void exchangeParts(Network& network, int tag, const at::Tensor& stage,
                   const Layout& layout) {
  if (!layout.part) return;
  if (layout.reduces) reducePart(network, tag, stage, layout);
  const auto part = [&](bool is_wanted, int owner) {
    return is_wanted ? bytesOf(stage, layout.placeOf(owner), layout.part)
                     : at::Tensor();
  };
  const int rank = layout.rank;
  network.exchangeWithAll(
      tag + 1, [&](int peer) { return part(layout.wants(peer, rank), rank); },
      [&](int peer) { return part(layout.wants(rank, peer), peer); });
}

// [distributed.hosts.short] All data came with the calls, so each rank reduces or copies what it needs.
void finishShort(const std::vector<at::Tensor>& messages,
                 const at::Tensor& stage, const Layout& layout) {
  std::vector<const void*> data;
  for (const at::Tensor& message : messages) data.push_back(dataIn(message));
  if (layout.reduces) {
    return checkOrccl(orcclReduceLocal(data.data(), layout.size,
                                       stage.data_ptr(), layout.count(),
                                       layout.call.datatype, layout.call.op));
  }
  char* const begin = static_cast<char*>(stage.data_ptr());
  for (int owner = 0; owner < layout.size; ++owner) {
    if (layout.wants(layout.rank, owner)) {
      std::memcpy(begin + layout.placeOf(owner), data[owner], layout.part);
    }
  }
}

// [distributed.hosts.agree] Before their data, or with it, the ranks exchange what they have called.
/// `own` is what this rank sends along with a short call.
void agreeAndExchange(Network& network, const at::Tensor& stage,
                      const Layout& layout, const at::Tensor& own) {
  std::vector<at::Tensor> messages;
  std::vector<orcclCall_t> calls;
  std::vector<int> ranks;
  for (int rank = 0; rank < layout.size; ++rank) {
    messages.push_back(messageOf(layout.call, kShortBytes));
    ranks.push_back(rank);
  }
  const at::Tensor& ours = messages[layout.rank];
  if (own.numel()) std::memcpy(dataIn(ours), own.data_ptr(), own.numel());
  const int tag = tagOf(false, layout.call.number);
  network.exchangeWithAll(
      tag, [&](int) { return ours; }, [&](int peer) { return messages[peer]; });
  for (const at::Tensor& each : messages) calls.push_back(callIn(each));
  checkOrccl(orcclCompareCalls(calls.data(), ranks.data(), layout.size));
  layout.isShort() ? finishShort(messages, stage, layout)
                   : exchangeParts(network, tag + 1, stage, layout);
}

// [distributed.hosts.collective] A single buffer is this rank's part of the stage, or it is the whole.
void AcrossHosts::collective(orStream_t stream, const Collective& what) {
  const auto found = members_->wait();
  if (found.is_one_host) return found.communicator->collective(stream, what);
  if (problem()) return;
  Layout layout(what.call, rank_, size_);
  layout.call.number = ++calls_;
  const size_t bytes = what.call.bytes;
  const auto copies = [&](const std::vector<void*>& data, orcclFunc_t of_part) {
    const size_t first = what.call.func == of_part ? rank_ : 0;
    Copies copies;
    for (size_t i = 0; i < data.size(); ++i) {
      copies.push_back({(first + i) * bytes, data[i], bytes});
    }
    return copies;
  };
  const Copies in = copies(what.inputs, orcclFuncAllGather);
  const Copies out = copies(what.outputs, orcclFuncReduceScatter);
  const size_t at = in.empty() ? 0 : in[0].at;
  const size_t sent = layout.isShort() && !in.empty() ? bytes : 0;
  perform(stream, layout.total(), in, out,
          [=](Network& network, const at::Tensor& stage) {
            agreeAndExchange(network, stage, layout, bytesOf(stage, at, sent));
          });
}

// [distributed.hosts.transfer.exchange] The two ranks exchange size and dtype first, and then the data.
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
    calls.push_back({true, op.peer, tag + !op.is_send, messageOf(call, 0)});
    calls.push_back({false, op.peer, tag + op.is_send, messageOf(call, 0)});
    if (op.bytes) {
      data.push_back(
          {op.is_send, op.peer, tag + 2, bytesOf(stage, at, op.bytes)});
    }
  }
  network.exchange(calls);
  for (size_t i = 0; i < shipments.size(); ++i) {
    const auto& [op, at, ours] = shipments[i];
    std::array both{ours, callIn(calls[2 * i + 1].bytes)};
    std::array ranks{rank, op.peer};
    if (!op.is_send) {
      std::swap(both[0], both[1]);
      std::swap(ranks[0], ranks[1]);
    }
    checkOrccl(orcclCompareCalls(both.data(), ranks.data(), 2));
  }
  network.exchange(data);
}

// [distributed.hosts.transfer.self] What a rank sends to itself never leaves its device.
void copyToSelf(orStream_t stream, std::span<const P2POp> ops, int rank) {
  std::vector<P2POp> receives, sends;
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
    check(orMemcpyAsync(receives[i].data, sends[i].data, sends[i].bytes,
                        orMemcpyDeviceToDevice, stream));
  }
}

// [distributed.hosts.transfer] Sends and receives of one call share a stage.
void AcrossHosts::pointToPoint(orStream_t stream, std::span<const P2POp> ops) {
  const auto found = members_->wait();
  if (found.is_one_host) return found.communicator->pointToPoint(stream, ops);
  if (problem()) return;
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
  if (was_busy || !jobs_->problem()->empty()) members_->network()->abort();
}

std::optional<std::string> AcrossHosts::problem() const {
  const auto found = members_->found();
  return found.is_one_host ? found.communicator->problem() : jobs_->problem();
}

std::string AcrossHosts::endedPeer() const {
  const auto found = members_->found();
  return found.is_one_host ? found.communicator->endedPeer()
                           : members_->network()->endedPeer();
}

orcclComm_t AcrossHosts::comm() const {
  const auto communicator = members_->found().communicator;
  return communicator ? communicator->comm() : nullptr;
}

// [-]
}  // namespace

// [distributed.hosts.factory] From now on, this function makes every communicator of the process group.
void spanHosts(EngineFactory make) {
  // A forked process has none of the threads.
  pthread_atfork(nullptr, nullptr, [] { Members::searches = 0; });
  engineFactory().withLock([&](auto& engine) { engine = std::move(make); });
  setCommunicatorFactory([](int rank, int size, int device,
                            c10::intrusive_ptr<JoiningStore> store)
                             -> std::shared_ptr<Communicator> {
    return std::make_shared<AcrossHosts>(rank, size, device, std::move(store));
  });
}

void endSearches() {
  if (orIsForked()) return;  // The threads are the parent's.
  const WithoutGil others_run;
  Patience::is_over_for_all = true;
  // Gloo has a time limit of its own for a host that does not answer.
  for (int ms = 0; Members::searches && ms < 10000; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// [-]
}  // namespace openreg
