// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/arguments.h"
#include "torch_openreg/chapters/distributed/process_group/process_group.h"

#include "torch_openreg/chapters/device/streams/stream.h"

#include <torch/csrc/distributed/c10d/Utils.hpp>

#include <utility>

namespace openreg {
namespace {

// [distributed.point-to-point.list] A list of sends and receives keeps the copies that they need.
class P2PList {
 public:
  void send(const at::Tensor& tensor, int peer) {
    const auto& data = data_.emplace_back(tensor, Dense::kRead);
    ops_.push_back({true, peer, data.data(), data.bytes(), dataTypeOf(tensor)});
  }
  void receive(const at::Tensor& tensor, int peer) {
    const auto& data = data_.emplace_back(tensor, Dense::kWrite);
    ops_.push_back(
        {false, peer, data.data(), data.bytes(), dataTypeOf(tensor)});
  }
  void enqueue(Communicator& group, orStream_t stream) const {
    group.pointToPoint(stream, ops_);
    for (size_t i = 0; i < data_.size(); ++i) {
      if (!ops_[i].is_send) data_[i].writeBack();
    }
  }

 private:
  std::vector<Dense> data_;
  std::vector<P2POp> ops_;
};

// [-]
}  // namespace

// [distributed.point-to-point.gather] The root receives from every rank, itself included.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::gather(
    Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const auto root = static_cast<int>(options.rootRank);
  checkRank("The root of a gather", options.rootRank);
  checkCount("inputs", inputs.size(), 1);
  checkCount("lists of outputs", outputs.size(), rank_ == root ? 1 : 0);
  const Tensors targets = rank_ == root ? outputs[0] : Tensors{};
  if (rank_ == root) checkCount("outputs", targets.size(), size_);
  const auto device = checkTensors(joined(inputs, targets));
  for (const auto& target : targets) checkSameSize(inputs[0], target);
  return collective({c10d::OpType::GATHER, "orccl:gather", device, inputs,
                     targets, options.timeout},
                    [&](Communicator& group, orStream_t stream) {
                      P2PList list;
                      list.send(inputs[0], root);
                      for (size_t rank = 0; rank < targets.size(); ++rank) {
                        list.receive(targets[rank], static_cast<int>(rank));
                      }
                      list.enqueue(group, stream);
                    });
}

// [distributed.point-to-point.scatter] A scatter is a gather in the other direction.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::scatter(
    Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) {
  const auto root = static_cast<int>(options.rootRank);
  checkRank("The root of a scatter", options.rootRank);
  checkCount("outputs", outputs.size(), 1);
  checkCount("lists of inputs", inputs.size(), rank_ == root ? 1 : 0);
  const Tensors sources = rank_ == root ? inputs[0] : Tensors{};
  if (rank_ == root) checkCount("inputs", sources.size(), size_);
  const auto device = checkTensors(joined(outputs, sources));
  for (const auto& source : sources) checkSameSize(source, outputs[0]);
  return collective({c10d::OpType::SCATTER, "orccl:scatter", device, sources,
                     outputs, options.timeout},
                    [&](Communicator& group, orStream_t stream) {
                      P2PList list;
                      for (size_t rank = 0; rank < sources.size(); ++rank) {
                        list.send(sources[rank], static_cast<int>(rank));
                      }
                      list.receive(outputs[0], root);
                      list.enqueue(group, stream);
                    });
}

// [distributed.point-to-point.all-to-all] Every rank sends to every rank, even if there is nothing to send, so wrong sizes are noticed.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::alltoall(
    Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  checkCount("inputs", inputs.size(), size_);
  checkCount("outputs", outputs.size(), size_);
  const Tensors all = joined(inputs, outputs);
  const auto device = checkTensors(all);
  for (const auto& tensor : all) checkSameType(inputs[0], tensor);
  return collective({c10d::OpType::ALLTOALL, "orccl:all_to_all", device, inputs,
                     outputs, options.timeout},
                    [&](Communicator& group, orStream_t stream) {
                      P2PList list;
                      for (int rank = 0; rank < size_; ++rank) {
                        list.send(inputs[rank], rank);
                        list.receive(outputs[rank], rank);
                      }
                      list.enqueue(group, stream);
                    });
}

// [distributed.point-to-point.split] The rows of one tensor are split among the ranks, evenly if no sizes are given.
namespace {

struct Split {
  std::vector<size_t> lengths, offsets;  // in elements

  Split(const at::Tensor& tensor, const std::vector<int64_t>& rows, int size)
      : lengths(size), offsets(size) {
    TORCH_CHECK_VALUE(tensor.dim() > 0,
                      "A tensor without dimensions has no rows that "
                      "all_to_all_single could split; pass tensor.reshape(1).");
    c10d::checkSplitSizes(rows, tensor, size);
    c10d::computeLengthsAndOffsets(rows, tensor, &lengths, &offsets);
  }
};

}  // namespace

// [distributed.point-to-point.all-to-all.whole] Each rank's rows are sent as if they were a tensor of their own.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_rows,
    std::vector<int64_t>& input_rows, const c10d::AllToAllOptions& options) {
  const auto device = checkTensors({input, output});
  checkSameType(input, output);
  const Split sends(input, input_rows, size_);
  const Split receives(output, output_rows, size_);
  return collective(
      {c10d::OpType::ALLTOALL_BASE,
       "orccl:all_to_all",
       device,
       {input},
       {output},
       options.timeout},
      [&](Communicator& group, orStream_t stream) {
        const Dense from(input, Dense::kRead), to(output, Dense::kWrite);
        const size_t size = input.element_size();
        const orcclDataType_t type = dataTypeOf(input);
        std::vector<P2POp> ops;
        for (int rank = 0; rank < size_; ++rank) {
          ops.push_back({true, rank, from.data(sends.offsets[rank]),
                         sends.lengths[rank] * size, type});
          ops.push_back({false, rank, to.data(receives.offsets[rank]),
                         receives.lengths[rank] * size, type});
        }
        group.pointToPoint(stream, ops);
        to.writeBack();
      });
}

// [distributed.point-to-point.single] A send or receive of its own runs on its peer's stream, so no other one has to come first.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::sendOrReceive(Tensors& tensors,
                                                            int peer,
                                                            bool is_send) {
  checkCount("tensors", tensors.size(), 1);
  const auto device = checkTensors(tensors);
  checkRank(is_send ? "The receiver" : "The sender", peer);
  TORCH_CHECK_VALUE(batch_ || peer != rank_, "A rank can ",
                    is_send ? "send to" : "receive from",
                    " itself only in a batch, which has both directions; use "
                    "batch_isend_irecv.");
  if (batch_) {
    batch_->ops.push_back({is_send, peer, tensors[0]});
    return nullptr;
  }
  Call call{is_send ? c10d::OpType::SEND : c10d::OpType::RECV,
            is_send ? "orccl:send" : "orccl:recv",
            device,
            tensors,  // The profile shows those of a receive, too.
            is_send ? Tensors{} : tensors,
            c10d::kUnsetTimeout};
  return start(
      call,
      [&](DeviceCommunicator& group) { return group.streamOf(is_send, peer); },
      [&](Communicator& group, orStream_t stream) {
        P2PList list;
        is_send ? list.send(tensors[0], peer) : list.receive(tensors[0], peer);
        list.enqueue(group, stream);
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
  TORCH_CHECK(batch_,
              "A batch ends that has not begun; call "
              "_start_coalescing() first.");
  const Batch batch = *std::exchange(batch_, std::nullopt);
  if (batch.ops.empty()) return batch.last_collective;
  Call call{c10d::OpType::COALESCED, "orccl:coalesced", -1, {}, {},
            c10d::kUnsetTimeout};
  for (const auto& [is_send, peer, tensor] : batch.ops) {
    (is_send ? call.inputs : call.outputs).push_back(tensor);
  }
  call.device = checkTensors(joined(call.inputs, call.outputs));
  return start(
      call, [](DeviceCommunicator& group) { return group.batch_stream; },
      [&](Communicator& group, orStream_t stream) {
        P2PList list;
        for (const auto& [is_send, peer, tensor] : batch.ops) {
          is_send ? list.send(tensor, peer) : list.receive(tensor, peer);
        }
        list.enqueue(group, stream);
        if (batch.last_collective) batch.last_collective->synchronize();
      });
}

// [-]
}  // namespace openreg
