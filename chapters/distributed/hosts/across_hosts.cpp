// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"

#include "torch_openreg/chapters/distributed/communicator/reduce.h"
#include "torch_openreg/chapters/distributed/communicator/signature.h"
#include "torch_openreg/chapters/distributed/hosts/links.h"
#include "torch_openreg/chapters/distributed/hosts/remote_transfer.h"
#include "torch_openreg/chapters/distributed/hosts/wide_numbers.h"
#include "torch_openreg/common/check.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace openreg {
namespace {

// [distributed.hosts.class] Every collective is one inside the hosts, one between their leaders, and one inside again.
class AcrossHosts final : public Collectives {
 public:
  AcrossHosts(int rank, int size, int device, Exchange exchange)
      : rank_(rank),
        size_(size),
        device_(device),
        connector_(rank, size, device, std::move(exchange)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void barrier(orStream_t stream) override;
  void broadcast(orStream_t stream, void* data, size_t bytes,
                 int root) override;
  void allReduce(orStream_t stream, void* output, const void* input,
                 size_t count, NumberType type, Reduction reduction) override;
  void reduce(orStream_t stream, void* output, const void* input, size_t count,
              NumberType type, Reduction reduction, int root) override;
  void allGather(orStream_t stream, std::span<void* const> outputs,
                 const void* input, size_t bytes) override;
  void reduceScatter(orStream_t stream, void* output,
                     std::span<const void* const> inputs, size_t count,
                     NumberType type, Reduction reduction) override;
  void transfer(orStream_t stream,
                std::span<const Transfer> transfers) override;
  orStream_t transferStream(bool is_send, int peer) override;

  void abort() noexcept override;
  bool isAborted() const noexcept override;
  std::string problem() const override;
  std::string endedPeer() const override;

  // [distributed.hosts.class.private] The network works on some chunks while the stream prepares the next.
 private:
  /// A chunk on its way.
  struct Step {
    size_t place;
    uint32_t job = 0;
  };

  /// Makes the links, or returns null if the group is aborted. `signature` is
  /// that of the call; leaders compare it.
  std::shared_ptr<Links> begin(orStream_t stream, Signature signature);
  /// Calls `before(i, step)` and, `kAhead` chunks later, `after(i, step)` for
  /// each chunk.
  template <class Before, class After>
  void pipeline(size_t chunks, Before before, After after);
  void reduceChunks(Links& links, orStream_t stream, void* output,
                    const void* input, size_t count,
                    const Signature& signature);
  void reduceBegin(Links& links, orStream_t stream, Step& step, void* output,
                   const void* input, size_t count, const Signature& call);
  void reduceEnd(Links& links, orStream_t stream, const Step& step,
                 void* output, size_t bytes, int root);
  void scatterChunks(Links& links, orStream_t stream,
                     const WideNumbers& numbers, size_t count);
  void gatherChunks(Links& links, orStream_t stream,
                    std::span<void* const> outputs, const char* input,
                    size_t bytes);
  std::shared_ptr<RemoteTransfers> remote(const Links& links);

  const int rank_, size_, device_;
  mutable Connector connector_;
  /// The watchdog looks at it as well.
  std::atomic<std::shared_ptr<RemoteTransfers>> remote_;
  uint64_t calls_ = 0;
};

// [distributed.hosts.place] A chunk has a place in the leader's pinned memory, and the other ranks copy nothing.
at::Tensor placeOf(const Links& links, size_t place) {
  const auto bytes = static_cast<int64_t>(links.placeBytes());
  return links.relay->memory().narrow(0, static_cast<int64_t>(place) * bytes,
                                      bytes);
}

void copyOut(const Links& links, orStream_t stream, size_t place, size_t offset,
             const void* data, size_t bytes) {
  if (!links.relay) return;
  char* to = static_cast<char*>(placeOf(links, place).data_ptr()) + offset;
  check(orMemcpyAsync(to, data, bytes, orMemcpyDeviceToHost, stream));
}

void copyIn(const Links& links, orStream_t stream, size_t place, size_t offset,
            void* data, size_t bytes) {
  if (!links.relay) return;
  char* from = static_cast<char*>(placeOf(links, place).data_ptr()) + offset;
  check(orMemcpyAsync(data, from, bytes, orMemcpyHostToDevice, stream));
}

// [distributed.hosts.request] A job of a leader runs only if its host is well, and says which rank broke a connection.
/// Returns the number of the job.
template <class Job>
uint32_t request(const Links& links, orStream_t stream, size_t place, Job job) {
  if (!links.relay) return 0;
  return links.relay->request(
      stream,
      [job = std::move(job), network = links.network, local = links.local,
       news = links.news, at = placeOf(links, place)] {
        // A host that has failed has nothing to send.
        TORCH_CHECK(!local->isAborted(), "The group was aborted.");
        try {
          job(*network, at);
        } catch (const c10::Error&) {
          throw;
        } catch (const std::exception& error) {  // Of the engine.
          TORCH_CHECK(false, news->explain(error.what()));
        }
      });
}

void await(const Links& links, orStream_t stream, uint32_t job) {
  if (links.relay) links.relay->await(stream, job);
}

// [distributed.hosts.begin] The ranks of a host compare their calls first, and then the leaders compare theirs on the network.
std::shared_ptr<Links> AcrossHosts::begin(orStream_t stream,
                                          Signature signature) {
  if (isAborted()) return nullptr;
  checkNotCaptured(stream);
  auto links = connector_.wait();
  if (links->topology.hosts() == 1) return links;
  signature.call = ++calls_;
  links->local->agree(stream, signature);
  request(*links, stream, 0,
          [signature, leaders = links->topology.leaders()](Network& network,
                                                           const at::Tensor&) {
            constexpr int64_t kBytes = sizeof(Signature);
            const auto own = at::empty({kBytes}, at::kByte);
            const auto all = at::empty({kBytes * network.hosts()}, at::kByte);
            std::memcpy(own.data_ptr(), &signature, kBytes);
            network.gather(all, own);
            const std::string problem = findDisagreement(
                {static_cast<Signature*>(all.data_ptr()), leaders.size()},
                leaders);
            TORCH_CHECK(problem.empty(), problem);
          });
  return links;
}

// [distributed.hosts.pipeline] All ranks of a host enqueue the same local collectives in the same order, those that wait for the network included.
template <class Before, class After>
void AcrossHosts::pipeline(size_t chunks, Before before, After after) {
  std::vector<Step> steps;
  for (size_t i = 0; i < chunks; ++i) steps.push_back({i % kPlaces});
  try {
    for (size_t i = 0; i < chunks + kAhead; ++i) {
      if (i < chunks) before(i, steps[i]);
      if (i >= kAhead) after(i - kAhead, steps[i - kAhead]);
    }
  } catch (...) {
    abort();
    throw;
  }
}

// [distributed.hosts.barrier] The ranks of a host meet, then the leaders, and then the ranks of a host again.
void AcrossHosts::barrier(orStream_t stream) {
  const auto links = begin(stream, {.operation = Operation::barrier});
  if (!links) return;
  if (links->topology.hosts() > 1) {
    // The leaders have met when they have compared their calls.
    const auto nothing = [](Network&, const at::Tensor&) {};
    await(*links, stream, request(*links, stream, 0, nothing));
  }
  links->local->barrier(stream);
}

// [distributed.hosts.broadcast] The root's host is served first, and its leader sends to the other leaders.
void AcrossHosts::broadcast(orStream_t stream, void* data, size_t bytes,
                            int root) {
  checkRank("root", root);
  const auto links =
      begin(stream,
            {.operation = Operation::broadcast, .root = root, .bytes = bytes});
  if (!links) return;
  const Topology& topology = links->topology;
  if (topology.hosts() == 1) {
    return links->local->broadcast(stream, data, bytes, root);
  }
  const bool is_here = topology.isHere(root);
  const auto chunk = [=](size_t i) {
    return static_cast<char*>(data) + i * kNetworkChunk;
  };
  const auto size = [=](size_t i) {
    return std::min(kNetworkChunk, bytes - i * kNetworkChunk);
  };
  const auto before = [&](size_t i, Step& step) {
    if (is_here) {
      links->local->broadcast(stream, chunk(i), size(i),
                              topology.localRank(root));
      copyOut(*links, stream, step.place, 0, chunk(i), size(i));
    }
    step.job = request(*links, stream, step.place,
                       [size = size(i), host = topology.host_of[root]](
                           Network& network, const at::Tensor& place) {
                         network.broadcast(place.narrow(0, 0, size), host);
                       });
  };
  const auto after = [&](size_t i, const Step& step) {
    await(*links, stream, step.job);
    if (is_here) return;
    copyIn(*links, stream, step.place, 0, chunk(i), size(i));
    links->local->broadcast(stream, chunk(i), size(i), 0);
  };
  pipeline((bytes + kNetworkChunk - 1) / kNetworkChunk, before, after);
}

// [distributed.hosts.reduce.begin] A host's leader gets the host's part of a sum, and the network adds the parts.
constexpr int kAllRanks = -1;

char* scratchOf(const Links& links, size_t place) {
  return static_cast<char*>(links.scratch) + place * kNetworkChunk;
}

/// The network divides by the number of all ranks.
Reduction inHost(Reduction reduction) {
  return reduction == Reduction::average ? Reduction::sum : reduction;
}

void AcrossHosts::reduceBegin(Links& links, orStream_t stream, Step& step,
                              void* output, const void* input, size_t count,
                              const Signature& call) {
  const bool is_mine = call.root == rank_ || call.root == kAllRanks;
  void* sum = is_mine ? output : scratchOf(links, step.place);
  links.local->reduce(stream, links.relay ? sum : nullptr, input, count,
                      call.type, inHost(call.reduction), 0);
  copyOut(links, stream, step.place, 0, sum, count * sizeOf(call.type));
  step.job = request(links, stream, step.place,
                     [=](Network& network, const at::Tensor& place) {
                       network.reduce(place, count, call.type, call.reduction);
                     });
}

// [distributed.hosts.reduce.end] The result goes to all ranks of the host, to the root there, or nowhere.
void AcrossHosts::reduceEnd(Links& links, orStream_t stream, const Step& step,
                            void* output, size_t bytes, int root) {
  await(links, stream, step.job);
  if (root == kAllRanks) {
    copyIn(links, stream, step.place, 0, output, bytes);
    return links.local->broadcast(stream, output, bytes, 0);
  }
  const Topology& topology = links.topology;
  if (!topology.isHere(root)) return;
  void* sum = root == rank_ ? output : scratchOf(links, step.place);
  copyIn(links, stream, step.place, 0, sum, bytes);
  const bool is_leader = links.relay != nullptr;
  if (is_leader == (root == rank_)) return;
  const Transfer transfer{is_leader, is_leader ? topology.localRank(root) : 0,
                          sum, bytes};
  links.local->transfer(stream, {&transfer, 1});
}

// [distributed.hosts.all-reduce] An all_reduce is a reduction to all ranks.
void AcrossHosts::reduceChunks(Links& links, orStream_t stream, void* output,
                               const void* input, size_t count,
                               const Signature& signature) {
  const WideNumbers wide(stream, device_, signature, output, {&input, 1},
                         count);
  const Signature& call = wide.call;
  const size_t width = sizeOf(call.type), most = kNetworkChunk / width;
  char* to = static_cast<char*>(wide.output);
  const char* from = static_cast<const char*>(wide.inputs[0]);
  const auto size = [=](size_t i) { return std::min(most, count - i * most); };
  pipeline((count + most - 1) / most,
           [&](size_t i, Step& step) {
             reduceBegin(links, stream, step, to + i * kNetworkChunk,
                         from + i * kNetworkChunk, size(i), call);
           },
           [&](size_t i, const Step& step) {
             reduceEnd(links, stream, step, to + i * kNetworkChunk,
                       size(i) * width, call.root);
           });
  wide.writeBack();
}

void AcrossHosts::allReduce(orStream_t stream, void* output, const void* input,
                            size_t count, NumberType type,
                            Reduction reduction) {
  checkReduction(type, reduction);
  Signature call{.operation = Operation::all_reduce,
                 .type = type,
                 .reduction = reduction,
                 .bytes = count * sizeOf(type)};
  const auto links = begin(stream, call);
  if (!links) return;
  if (links->topology.hosts() == 1) {
    return links->local->allReduce(stream, output, input, count, type,
                                   reduction);
  }
  call.root = kAllRanks;
  reduceChunks(*links, stream, output, input, count, call);
}

// [distributed.hosts.reduce] A reduction to one rank ends on the root's host.
void AcrossHosts::reduce(orStream_t stream, void* output, const void* input,
                         size_t count, NumberType type, Reduction reduction,
                         int root) {
  checkRank("root", root);
  checkReduction(type, reduction);
  const Signature call{.operation = Operation::reduce,
                       .type = type,
                       .reduction = reduction,
                       .root = root,
                       .bytes = count * sizeOf(type)};
  const auto links = begin(stream, call);
  if (!links) return;
  if (links->topology.hosts() == 1) {
    return links->local->reduce(stream, output, input, count, type, reduction,
                                root);
  }
  reduceChunks(*links, stream, rank_ == root ? output : nullptr, input, count,
               call);
}

// [distributed.hosts.reduce-scatter] A reduce_scatter sends each number once, an all_reduce twice.
void AcrossHosts::reduceScatter(orStream_t stream, void* output,
                                std::span<const void* const> inputs,
                                size_t count, NumberType type,
                                Reduction reduction) {
  checkParts("reduce_scatter", "inputs", inputs.size());
  checkReduction(type, reduction);
  const Signature signature{.operation = Operation::reduce_scatter,
                            .type = type,
                            .reduction = reduction,
                            .bytes = count * sizeOf(type)};
  const auto links = begin(stream, signature);
  if (!links) return;
  if (links->topology.hosts() == 1) {
    return links->local->reduceScatter(stream, output, inputs, count, type,
                                       reduction);
  }
  const WideNumbers wide(stream, device_, signature, output, inputs, count);
  scatterChunks(*links, stream, wide, count);
  wide.writeBack();
}

static void copy(orStream_t stream, void* to, const void* from, size_t bytes) {
  check(orMemcpyAsync(to, from, bytes, orMemcpyDeviceToDevice, stream));
}

// [distributed.hosts.reduce-scatter.chunks] A chunk has the numbers for each rank of each host, and each host gets the sums for its ranks.
void AcrossHosts::scatterChunks(Links& links, orStream_t stream,
                                const WideNumbers& numbers, size_t count) {
  const Signature& call = numbers.call;
  const Topology& topology = links.topology;
  const size_t widest = topology.widest(), parts = widest * topology.hosts();
  const size_t width = sizeOf(call.type);
  const size_t most = kNetworkChunk / parts / 64 * 64 / width;
  const auto size = [=](size_t i) { return std::min(most, count - i * most); };
  const auto before = [&](size_t i, Step& step) {
    char* sums = scratchOf(links, step.place);
    const size_t bytes = size(i) * width;
    for (int rank = 0; rank < size_; ++rank) {
      copy(stream, sums + topology.placeOf(rank) * bytes,
           static_cast<const char*>(numbers.inputs[rank]) + i * most * width,
           bytes);
    }
    links.local->reduce(stream, sums, sums, parts * size(i), call.type,
                        inHost(call.reduction), 0);
    copyOut(links, stream, step.place, 0, sums, parts * bytes);
    step.job = request(
        links, stream, step.place,
        [=, count = widest * size(i)](Network& network, const auto& place) {
          network.reduceParts(place, count, call.type, call.reduction);
        });
  };
  const auto after = [&](size_t i, const Step& step) {
    await(links, stream, step.job);
    char* sums = scratchOf(links, step.place);
    const size_t bytes = size(i) * width;
    copyIn(links, stream, step.place, parts * bytes, sums, widest * bytes);
    links.local->broadcast(stream, sums, widest * bytes, 0);
    copy(stream, static_cast<char*>(numbers.output) + i * most * width,
         sums + topology.localRank(rank_) * bytes, bytes);
  };
  pipeline((count + most - 1) / most, before, after);
}

// [distributed.hosts.all-gather] A leader sends the parts of its host together, padded to those of the largest host.
void AcrossHosts::allGather(orStream_t stream, std::span<void* const> outputs,
                            const void* input, size_t bytes) {
  checkParts("all_gather", "outputs", outputs.size());
  const auto links =
      begin(stream, {.operation = Operation::all_gather, .bytes = bytes});
  if (!links) return;
  if (links->topology.hosts() == 1) {
    return links->local->allGather(stream, outputs, input, bytes);
  }
  gatherChunks(*links, stream, outputs, static_cast<const char*>(input), bytes);
}

// [distributed.hosts.all-gather.chunks] A place has the chunks of all hosts first, and then those of this one.
void AcrossHosts::gatherChunks(Links& links, orStream_t stream,
                               std::span<void* const> outputs,
                               const char* input, size_t bytes) {
  const Topology& topology = links.topology;
  const size_t widest = topology.widest();
  const size_t most = kNetworkChunk / (widest * topology.hosts()) / 64 * 64;
  const auto size = [=](size_t i) { return std::min(most, bytes - i * most); };
  const auto at = [&](int rank, size_t i) {
    return static_cast<char*>(outputs[rank]) + i * most;
  };
  const auto before = [&](size_t i, Step& step) {
    std::vector<void*> here;
    for (int rank : topology.here()) here.push_back(at(rank, i));
    links.local->allGather(stream, here, input + i * most, size(i));
    for (size_t local = 0; local < here.size(); ++local) {
      copyOut(links, stream, step.place, kNetworkChunk + local * size(i),
              here[local], size(i));
    }
    step.job = request(
        links, stream, step.place,
        [own = widest * size(i)](Network& network, const at::Tensor& place) {
          network.gather(place.narrow(0, 0, own * network.hosts()),
                         place.narrow(0, kNetworkChunk, own));
        });
  };
  const auto after = [&](size_t i, const Step& step) {
    await(links, stream, step.job);
    for (int rank = 0; rank < size_; ++rank) {
      if (topology.isHere(rank)) continue;
      copyIn(links, stream, step.place, topology.placeOf(rank) * size(i),
             at(rank, i), size(i));
      links.local->broadcast(stream, at(rank, i), size(i), 0);
    }
  };
  pipeline((bytes + most - 1) / most, before, after);
}

// [distributed.hosts.remote-made] The first transfer to another host makes the part that serves it, while the watchdog may look.
std::shared_ptr<RemoteTransfers> AcrossHosts::remote(const Links& links) {
  auto remote = remote_.load();
  if (!remote) {
    remote =
        std::make_shared<RemoteTransfers>(device_, links.pairs, links.local);
    remote_ = remote;
    // Perhaps aborted before there was anything to abort.
    if (isAborted()) remote->abort();
  }
  return remote;
}

// [distributed.hosts.transfer] Transfers with other hosts begin before this stream waits for those on this one.
void AcrossHosts::transfer(orStream_t stream,
                           std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers) {
    checkPeer(transfer.is_send, transfer.peer);
  }
  if (isAborted()) return;
  const auto links = connector_.wait();
  std::vector<Transfer> here, elsewhere;
  for (Transfer transfer : transfers) {
    const bool is_here = links->topology.isHere(transfer.peer);
    if (is_here) transfer.peer = links->topology.localRank(transfer.peer);
    (is_here ? here : elsewhere).push_back(transfer);
  }
  if (elsewhere.empty()) return links->local->transfer(stream, here);
  const auto remote = this->remote(*links);
  try {
    remote->begin(stream, elsewhere);
    if (!here.empty()) links->local->transfer(stream, here);
    remote->end(stream, elsewhere);
  } catch (...) {  // The peers would wait for the rest.
    abort();
    throw;
  }
}

orStream_t AcrossHosts::transferStream(bool is_send, int peer) {
  checkPeer(is_send, peer);
  const auto links = connector_.wait();
  const Topology& topology = links->topology;
  return topology.isHere(peer)
             ? links->local->transferStream(is_send, topology.localRank(peer))
             : remote(*links)->stream(is_send, peer);
}

// [distributed.hosts.end] What ends one level ends the other.
void AcrossHosts::abort() noexcept {
  connector_.abort();
  if (const auto remote = remote_.load()) remote->abort();
}

bool AcrossHosts::isAborted() const noexcept {
  if (connector_.isAborted()) return true;
  const auto links = connector_.links();
  if (!links) return false;
  const auto remote = remote_.load();
  const bool has_failed = links->local->isAborted() ||
                          (links->relay && links->relay->isAborted()) ||
                          (remote && remote->isAborted());
  if (has_failed) const_cast<AcrossHosts*>(this)->abort();
  return has_failed;
}

// [distributed.hosts.problem] What this rank finds out, it tells the ranks of all hosts.
std::string AcrossHosts::problem() const {
  const auto links = connector_.links();
  if (!links) return "";
  std::string problem = links->local->problem();
  const auto remote = remote_.load();
  if (problem.empty() && remote) problem = remote->problem();
  if (problem.empty() && links->relay) problem = links->relay->problem();
  if (links->news && !problem.empty()) links->news->tell(problem);
  return problem;
}

std::string AcrossHosts::endedPeer() const {
  const auto links = connector_.links();
  if (!links) return "";
  const std::string ended = links->local->endedPeer();
  if (!links->news) return ended;
  if (ended.empty()) return links->news->told();
  links->news->tell(ended);
  return ended;
}

}  // namespace

// [distributed.hosts.make] The thread that finds the other ranks starts at once.
std::shared_ptr<Collectives> makeAcrossHosts(int rank, int size, int device,
                                             Exchange exchange) {
  return std::make_shared<AcrossHosts>(rank, size, device, std::move(exchange));
}

// [-]
}  // namespace openreg
