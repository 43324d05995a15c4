// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/process_group.h"

#include "torch_openreg/chapters/device/streams/stream.h"

#include <ATen/MemoryOverlap.h>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include <utility>

namespace openreg {

// [distributed.point-to-point.enqueue] The copies of other layouts live until everything that reads them is enqueued.
void ProcessGroupOrccl::enqueue(Communicator& communicator, orStream_t stream,
                                const std::vector<Transfer>& transfers) {
  std::vector<Dense> data;
  std::vector<P2POp> ops;
  for (const auto& [is_send, peer, tensor] : transfers) {
    const auto use = is_send ? Dense::kRead : Dense::kWrite;
    const auto& dense = data.emplace_back(tensor, use);
    ops.push_back(
        {is_send, peer, dense.data(), dense.bytes(), dataTypeOf(tensor)});
  }
  communicator.pointToPoint(stream, ops);
  for (size_t i = 0; i < data.size(); ++i) {
    if (!ops[i].is_send) data[i].writeBack();
  }
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::exchange(
    const Call& call, const std::vector<Transfer>& transfers) {
  return start(
      call, [](DeviceCommunicator& own) { return own.collective_stream; },
      [&](Communicator& communicator, orStream_t stream) {
        enqueue(communicator, stream, transfers);
      });
}

// [distributed.point-to-point.root] A scatter is a gather in the other direction, and the root takes part in both.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::exchangeWithRoot(
    c10d::OpType type, const char* title, Tensors& one, Lists& all,
    int64_t root, std::chrono::milliseconds timeout, bool is_gather) {
  checkRank(is_gather ? "The root of a gather" : "The root of a scatter", root);
  checkCount(is_gather ? "inputs" : "outputs", one.size(), 1);
  checkCount(is_gather ? "lists of outputs" : "lists of inputs", all.size(),
             rank_ == root ? 1 : 0);
  const Tensors parts = rank_ == root ? all[0] : Tensors{};
  if (rank_ == root) {
    checkCount(is_gather ? "outputs" : "inputs", parts.size(), size_);
  }
  const Call call{type, title, is_gather ? one : parts, is_gather ? parts : one,
                  timeout};
  std::vector<Transfer> transfers{{is_gather, static_cast<int>(root), one[0]}};
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    is_gather ? checkSameSize(one[0], parts[rank])
              : checkSameSize(parts[rank], one[0]);
    transfers.push_back({!is_gather, static_cast<int>(rank), parts[rank]});
  }
  return exchange(call, transfers);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::gather(
    Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  return exchangeWithRoot(c10d::OpType::GATHER, "orccl:gather", inputs, outputs,
                          options.rootRank, options.timeout, true);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::scatter(
    Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) {
  return exchangeWithRoot(c10d::OpType::SCATTER, "orccl:scatter", outputs,
                          inputs, options.rootRank, options.timeout, false);
}

// [distributed.point-to-point.all-to-all] Every rank sends to every rank, even if there is nothing to send, so wrong sizes are noticed.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::exchangeWithAll(
    const Call& call, const Tensors& outputs, const Tensors& inputs) {
  std::vector<Transfer> transfers;
  for (int rank = 0; rank < size_; ++rank) {
    transfers.push_back({true, rank, inputs[rank]});
    transfers.push_back({false, rank, outputs[rank]});
  }
  return exchange(call, transfers);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::alltoall(
    Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  checkCount("inputs", inputs.size(), size_);
  checkCount("outputs", outputs.size(), size_);
  const Call call{c10d::OpType::ALLTOALL, "orccl:all_to_all", inputs, outputs,
                  options.timeout};
  for (const auto& input : inputs) checkSameType(inputs[0], input);
  for (const auto& output : outputs) checkSameType(inputs[0], output);
  return exchangeWithAll(call, outputs, inputs);
}

// [distributed.point-to-point.rows] The rows of one tensor are split among the ranks, evenly if no sizes are given.
static std::vector<at::Tensor> rowsOf(const at::Tensor& tensor,
                                      const std::vector<int64_t>& rows,
                                      int size) {
  TORCH_CHECK_VALUE(tensor.dim() > 0,
                    "A tensor without dimensions has no rows that "
                    "all_to_all_single could split; pass tensor.reshape(1).");
  c10d::checkSplitSizes(rows, tensor, size);
  return tensor.split_with_sizes(
      rows.empty() ? std::vector<int64_t>(size, tensor.size(0) / size) : rows);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_rows,
    std::vector<int64_t>& input_rows, const c10d::AllToAllOptions& options) {
  const Call call{c10d::OpType::ALLTOALL_BASE,
                  "orccl:all_to_all",
                  {input},
                  {output},
                  options.timeout};
  checkSameType(input, output);
  at::assert_no_internal_overlap(output);
  return exchangeWithAll(call, rowsOf(output, output_rows, size_),
                         rowsOf(input, input_rows, size_));
}

// [distributed.point-to-point.single] A send or receive of its own runs on its peer's stream, so no other one has to come first.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::sendOrReceive(Tensors& tensors,
                                                            int peer,
                                                            bool is_send) {
  checkCount("tensors", tensors.size(), 1);
  // The profile shows the tensors of a receive, too.
  const Call call{is_send ? c10d::OpType::SEND : c10d::OpType::RECV,
                  is_send ? "orccl:send" : "orccl:recv", tensors,
                  is_send ? Tensors{} : tensors, c10d::kUnsetTimeout};
  checkRank(is_send ? "The receiver" : "The sender", peer);
  if (const std::lock_guard lock(mutex_); batch_) {
    batch_->transfers.push_back({is_send, peer, tensors[0]});
    return nullptr;
  }
  TORCH_CHECK_VALUE(peer != rank_, "A rank can ",
                    is_send ? "send to" : "receive from",
                    " itself only in a batch, which has both directions; use "
                    "batch_isend_irecv.");
  return start(
      call,
      [&](DeviceCommunicator& own) { return own.streamOf(is_send, peer); },
      [&](Communicator& communicator, orStream_t stream) {
        enqueue(communicator, stream, {{is_send, peer, tensors[0]}});
      });
}

// [distributed.point-to-point.tags] Sends and receives of a pair of ranks match in the order of the calls, and tags are ignored, as NCCL does.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::send(Tensors& tensors, int peer,
                                                   int) {
  return sendOrReceive(tensors, peer, true);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::recv(Tensors& tensors, int peer,
                                                   int) {
  return sendOrReceive(tensors, peer, false);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::recvAnysource(Tensors&, int) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "orccl receives from a rank that the call names; pass src, or send CPU "
      "tensors with gloo, which can receive from any rank.");
}

// [distributed.point-to-point.batch] The operations of a batch begin together; what an exception left of an earlier batch is dropped.
void ProcessGroupOrccl::startCoalescing() {
  const std::lock_guard lock(mutex_);
  batch_.emplace();
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::endCoalescing() {
  std::unique_lock lock(mutex_);
  TORCH_CHECK(batch_,
              "A batch ends that has not begun; call "
              "_start_coalescing() first.");
  const auto [transfers, last] = *std::exchange(batch_, std::nullopt);
  lock.unlock();
  if (transfers.empty()) return last;
  Tensors sent, received;
  for (const auto& [is_send, peer, tensor] : transfers) {
    (is_send ? sent : received).push_back(tensor);
  }
  return start(
      {c10d::OpType::COALESCED, "orccl:coalesced", sent, received,
       c10d::kUnsetTimeout},
      [](DeviceCommunicator& own) { return own.batch_stream; },
      [&, &transfers = transfers, &last = last](Communicator& communicator,
                                                orStream_t stream) {
        enqueue(communicator, stream, transfers);
        if (last) last->synchronize();
      });
}

// [-]
}  // namespace openreg
