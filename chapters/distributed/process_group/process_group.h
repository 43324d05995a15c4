// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/process_group/arguments.h"
#include "torch_openreg/chapters/distributed/process_group/work.h"

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace openreg {

// [distributed.process-group] PyTorch asks a backend for collectives, and for some facts about itself.
/// The collectives of `torch.distributed` between openreg devices. Arguments
/// are those of c10d::Backend.
class ProcessGroupOrccl final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;         ///< as PyTorch passes them
  using Lists = std::vector<Tensors>;              ///< as PyTorch passes them
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;  ///< what a call returns

  /// `pg_options` of `init_process_group`.
  struct Options final : c10d::Backend::Options {
    /// After `timeout` an operation that is not done ends its group.
    explicit Options(std::chrono::milliseconds timeout = kBackendDefaultTimeout)
        : c10d::Backend::Options("orccl", timeout) {}
  };

  /// Waits for no other rank.
  ProcessGroupOrccl(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                    const c10d::Backend::Options& options);
  /// Aborts what is under way.
  ~ProcessGroupOrccl() override;

  // [distributed.process-group.facts] Facts that PyTorch reads before it uses a group.
  const std::string getBackendName() const override { return "orccl"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return options_;
  }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  c10d::ErrorType getError() override { return state_->error(); }
  void setTimeout(std::chrono::milliseconds timeout) override;
  /// All ranks count from 0, so there is nothing to agree on.
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return collectives_; }
  void enableCollectivesTiming() override { is_timed_ = true; }
  void eagerConnectSingleDevice(at::Device device) override;
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store,
      const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override;
  void abort() override;
  /// Waits for what is under way, and leaves the group.
  void shutdown() override;

  // [distributed.process-group.collectives] Collectives that the library has.
  WorkPtr broadcast(Tensors&, const c10d::BroadcastOptions&) override;
  WorkPtr allreduce(Tensors&, const c10d::AllreduceOptions&) override;
  WorkPtr allreduce_coalesced(Tensors&,
                              const c10d::AllreduceCoalescedOptions&) override;
  WorkPtr reduce(Tensors&, const c10d::ReduceOptions&) override;
  WorkPtr allgather(Lists&, Tensors&, const c10d::AllgatherOptions&) override;
  WorkPtr _allgather_base(at::Tensor&, at::Tensor&,
                          const c10d::AllgatherOptions&) override;
  WorkPtr allgather_into_tensor_coalesced(
      Tensors&, Tensors&, const c10d::AllgatherOptions&) override;
  WorkPtr reduce_scatter(Tensors&, Lists&,
                         const c10d::ReduceScatterOptions&) override;
  WorkPtr _reduce_scatter_base(at::Tensor&, at::Tensor&,
                               const c10d::ReduceScatterOptions&) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors&, Tensors&, const c10d::ReduceScatterOptions&) override;
  WorkPtr barrier(const c10d::BarrierOptions&) override;

  // [distributed.process-group.point-to-point] Everything else is made of sends and receives between two ranks.
  WorkPtr gather(Lists&, Tensors&, const c10d::GatherOptions&) override;
  WorkPtr scatter(Tensors&, Lists&, const c10d::ScatterOptions&) override;
  WorkPtr alltoall(Tensors&, Tensors&, const c10d::AllToAllOptions&) override;
  WorkPtr alltoall_base(at::Tensor&, at::Tensor&, std::vector<int64_t>&,
                        std::vector<int64_t>&,
                        const c10d::AllToAllOptions&) override;
  WorkPtr send(Tensors&, int peer, int tag) override;
  WorkPtr recv(Tensors&, int peer, int tag) override;
  WorkPtr recvAnysource(Tensors&, int tag) override;
  void startCoalescing() override;
  /// Null if the batch is empty.
  WorkPtr endCoalescing() override;

  // [distributed.process-group.call] An operation is described by its tensors; one function checks, orders and records it.
 private:
  struct Call {
    c10d::OpType type;
    const char* title;  // "orccl:all_reduce"; lives forever
    Tensors inputs, outputs;
    std::chrono::milliseconds timeout;
    c10::DeviceIndex device = checkTensors(inputs, outputs);
  };
  using ChooseStream = c10::function_ref<c10::Stream(DeviceCommunicator&)>;
  using Enqueue = c10::function_ref<void(Communicator&, orStream_t)>;

  c10::intrusive_ptr<CollectiveWork> start(const Call& call,
                                           ChooseStream choose,
                                           Enqueue enqueue);
  c10::intrusive_ptr<CollectiveWork> describe(const Call& call,
                                              c10::Stream stream,
                                              c10::Stream caller,
                                              bool is_collective);
  void checkRank(const char* what, int64_t rank) const;

  // [distributed.process-group.parts] A collective is calls of the library; everything else is a list of sends and receives.
  /// One call of the library: what it reads and what it writes on this rank.
  struct Part {
    at::TensorList from, to;
    int root = 0;
  };
  struct Transfer {
    bool is_send;
    int peer;
    at::Tensor tensor;
  };
  WorkPtr collective(const Call& call, orcclFunc_t func,
                     c10::ArrayRef<Part> parts,
                     const c10d::ReduceOp* reduction = nullptr);
  WorkPtr collectiveOfEach(const Call& call, orcclFunc_t func,
                           const c10d::ReduceOp* reduction = nullptr);
  WorkPtr exchange(const Call& call, const std::vector<Transfer>& transfers);
  WorkPtr exchangeWithRoot(c10d::OpType type, const char* title, Tensors& one,
                           Lists& all, int64_t root,
                           std::chrono::milliseconds timeout, bool is_gather);
  WorkPtr exchangeWithAll(const Call& call, const Tensors& outputs,
                          const Tensors& inputs);
  static void enqueue(Communicator& communicator, orStream_t stream,
                      const std::vector<Transfer>& transfers);
  WorkPtr sendOrReceive(Tensors& tensors, int peer, bool is_send);
  c10::DeviceIndex barrierDevice(const c10d::BarrierOptions& options) const;

  // [distributed.process-group.members] Operations count collectives and sends or receives apart, because ranks make different ones.
  struct Batch {
    std::vector<Transfer> transfers;
    c10::intrusive_ptr<CollectiveWork> last_collective;
  };

  const c10::intrusive_ptr<c10d::Backend::Options> options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<CommunicatorMap> communicators_;
  std::shared_ptr<GroupState> state_;
  std::mutex mutex_;  // a communicator takes calls from one thread at a time
  std::atomic<uint64_t> collectives_{0};
  std::atomic<uint64_t> splits_{0};
  uint64_t point_to_point_ = 0;
  std::atomic<bool> is_timed_{false};
  std::optional<Batch> batch_;
};

// [-]
}  // namespace openreg
