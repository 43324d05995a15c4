// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/arguments.h"
#include "torch_openreg/chapters/distributed/process_group/process_group.h"

#include "torch_openreg/chapters/device/runtime.h"

#include <algorithm>

namespace openreg {
namespace {

// [distributed.operations.parts] A tensor for the whole group has a part for each rank, one after the other.
using Tensors = ProcessGroupOrccl::Tensors;

std::vector<void*> partsOf(const Dense& whole, size_t count, int size) {
  std::vector<void*> parts;
  for (int rank = 0; rank < size; ++rank) {
    parts.push_back(whole.data(rank * count));
  }
  return parts;
}

void checkWhole(const at::Tensor& whole, const at::Tensor& part, int size) {
  checkSameType(whole, part);
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size,
                    "The tensor for all ranks has ", whole.numel(),
                    " elements; ", size, " parts of ", part.numel(),
                    " elements need ", part.numel() * size, ".");
}

// [-]
}  // namespace

// [distributed.operations.broadcast] Bytes are enough to move a tensor of any dtype.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::broadcast(
    Tensors& tensors, const c10d::BroadcastOptions& options) {
  checkCount("tensors", tensors.size(), 1);
  const auto device = checkTensors(tensors);
  const auto root = static_cast<int>(options.rootRank);
  checkRank("The root of a broadcast", options.rootRank);
  return collective({c10d::OpType::BROADCAST, "orccl:broadcast", device,
                     tensors, tensors, options.timeout},
                    [&](Communicator& group, orStream_t stream) {
                      const bool is_root = rank_ == root;
                      const Dense data(tensors[0],
                                       is_root ? Dense::kRead : Dense::kWrite);
                      group.broadcast(stream, data.data(), data.bytes(), root,
                                      dataTypeOf(tensors[0]));
                      if (!is_root) data.writeBack();
                    });
}

// [distributed.operations.all-reduce] Tensors that are coalesced are reduced one after the other, in one work.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduceAll(
    c10d::OpType type, Tensors& tensors,
    const c10d::AllreduceOptions& options) {
  const auto device = checkTensors(tensors);
  const auto numbers = numbersOf(tensors, options.reduceOp);
  return collective(
      {type, "orccl:all_reduce", device, tensors, tensors, options.timeout},
      [&](Communicator& group, orStream_t stream) {
        for (size_t i = 0; i < tensors.size(); ++i) {
          const Dense input(premultiplied(tensors[i], options.reduceOp),
                            Dense::kRead);
          const Dense output(tensors[i], Dense::kWrite);
          const auto [count, type, reduction] = numbers[i];
          group.allReduce(stream, output.data(), input.data(), count, type,
                          reduction);
          output.writeBack();
        }
      });
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allreduce(
    Tensors& tensors, const c10d::AllreduceOptions& options) {
  checkCount("tensors", tensors.size(), 1);
  return reduceAll(c10d::OpType::ALLREDUCE, tensors, options);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return reduceAll(c10d::OpType::ALLREDUCE_COALESCED, tensors, options);
}

// [distributed.operations.reduce] Only the root's tensor changes.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduce(
    Tensors& tensors, const c10d::ReduceOptions& options) {
  checkCount("tensors", tensors.size(), 1);
  const auto device = checkTensors(tensors);
  const auto root = static_cast<int>(options.rootRank);
  checkRank("The root of a reduction", options.rootRank);
  const auto [count, type, reduction] =
      numbersOf(tensors, options.reduceOp).front();
  return collective({c10d::OpType::REDUCE, "orccl:reduce", device, tensors,
                     tensors, options.timeout},
                    [&, count = count, type = type, reduction = reduction](
                        Communicator& group, orStream_t stream) {
                      const Dense input(
                          premultiplied(tensors[0], options.reduceOp),
                          Dense::kRead);
                      if (rank_ != root) {
                        group.reduce(stream, nullptr, input.data(), count, type,
                                     reduction, root);
                        return;
                      }
                      const Dense output(tensors[0], Dense::kWrite);
                      group.reduce(stream, output.data(), input.data(), count,
                                   type, reduction, root);
                      output.writeBack();
                    });
}

// [distributed.operations.all-gather] Ranks may contribute different sizes to a list, and then receives fill it.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allgather(
    Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  checkCount("inputs", inputs.size(), 1);
  checkCount("lists of outputs", outputs.size(), 1);
  checkCount("outputs", outputs[0].size(), size_);
  const auto device = checkTensors(joined(inputs, outputs[0]));
  for (const auto& output : outputs[0]) checkSameType(inputs[0], output);
  checkSameSize(inputs[0], outputs[0][rank_]);
  const bool is_even = std::all_of(
      outputs[0].begin(), outputs[0].end(),
      [&](const auto& output) { return output.numel() == inputs[0].numel(); });
  return collective(
      {c10d::OpType::ALLGATHER, "orccl:all_gather", device, inputs, outputs[0],
       options.timeout},
      [&](Communicator& group, orStream_t stream) {
        const Dense input(inputs[0], Dense::kRead);
        const orcclDataType_t type = dataTypeOf(inputs[0]);
        std::vector<Dense> dense;
        std::vector<void*> addresses;
        for (const auto& output : outputs[0]) {
          addresses.push_back(dense.emplace_back(output, Dense::kWrite).data());
        }
        if (is_even) {
          group.allGather(stream, addresses, input.data(), input.bytes(), type);
        } else {
          std::vector<P2POp> ops;
          for (int rank = 0; rank < size_; ++rank) {
            ops.push_back({true, rank, input.data(), input.bytes(), type});
            ops.push_back(
                {false, rank, addresses[rank], dense[rank].bytes(), type});
          }
          group.pointToPoint(stream, ops);
        }
        for (const auto& output : dense) output.writeBack();
      });
}

// [distributed.operations.all-gather.whole] The outputs of all ranks may also be one tensor.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::gatherAll(
    c10d::OpType type, Tensors& outputs, Tensors& inputs,
    const c10d::AllgatherOptions& options) {
  const auto device = checkTensors(joined(inputs, outputs));
  checkCount("outputs", outputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    checkWhole(outputs[i], inputs[i], size_);
  }
  return collective(
      {type, "orccl:all_gather", device, inputs, outputs, options.timeout},
      [&](Communicator& group, orStream_t stream) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          const Dense input(inputs[i], Dense::kRead);
          const Dense output(outputs[i], Dense::kWrite);
          group.allGather(stream, partsOf(output, inputs[i].numel(), size_),
                          input.data(), input.bytes(), dataTypeOf(inputs[i]));
          output.writeBack();
        }
      });
}

// [distributed.operations.all-gather.coalesced] The other forms differ only in how many tensors they take.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::_allgather_base(
    at::Tensor& output, at::Tensor& input,
    const c10d::AllgatherOptions& options) {
  Tensors outputs{output}, inputs{input};
  return gatherAll(c10d::OpType::_ALLGATHER_BASE, outputs, inputs, options);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return gatherAll(c10d::OpType::COALESCED, outputs, inputs, options);
}

/// `lists[r][i]` is rank r's `inputs[i]`.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allgather_coalesced(
    Lists& lists, Tensors& inputs, const c10d::AllgatherOptions& options) {
  checkCount("lists of outputs", lists.size(), size_);
  for (const auto& list : lists) {
    checkCount("outputs", list.size(), inputs.size());
  }
  WorkPtr last;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Lists outputs(1);
    for (const auto& list : lists) outputs[0].push_back(list[i]);
    Tensors input{inputs[i]};
    last = allgather(outputs, input, options);
  }
  return last;
}

// [distributed.operations.reduce-scatter] A list whose parts differ in size is reduced part by part, each to its rank.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduce_scatter(
    Tensors& outputs, Lists& inputs,
    const c10d::ReduceScatterOptions& options) {
  checkCount("outputs", outputs.size(), 1);
  checkCount("lists of inputs", inputs.size(), 1);
  checkCount("inputs", inputs[0].size(), size_);
  const auto device = checkTensors(joined(outputs, inputs[0]));
  for (const auto& input : inputs[0]) checkSameType(input, outputs[0]);
  checkSameSize(inputs[0][rank_], outputs[0]);
  const auto numbers = numbersOf(inputs[0], options.reduceOp);
  const bool is_even = std::all_of(
      numbers.begin(), numbers.end(),
      [&](const Numbers& part) { return part.count == numbers[rank_].count; });
  return collective(
      {c10d::OpType::REDUCE_SCATTER, "orccl:reduce_scatter", device, inputs[0],
       outputs, options.timeout},
      [&](Communicator& group, orStream_t stream) {
        const Dense output(outputs[0], Dense::kWrite);
        std::vector<Dense> dense;
        std::vector<const void*> addresses;
        for (const auto& input : inputs[0]) {
          dense.emplace_back(premultiplied(input, options.reduceOp),
                             Dense::kRead);
          addresses.push_back(dense.back().data());
        }
        const auto [count, type, reduction] = numbers[rank_];
        if (is_even) {
          group.reduceScatter(stream, output.data(), addresses, count, type,
                              reduction);
        } else {
          for (int rank = 0; rank < size_; ++rank) {
            group.reduce(stream, output.data(), addresses[rank],
                         numbers[rank].count, type, reduction, rank);
          }
        }
        output.writeBack();
      });
}

// [distributed.operations.reduce-scatter.whole] The inputs for all ranks may also be one tensor.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduceScatterAll(
    c10d::OpType type, Tensors& outputs, Tensors& inputs,
    const c10d::ReduceScatterOptions& options) {
  const auto device = checkTensors(joined(inputs, outputs));
  checkCount("outputs", outputs.size(), inputs.size());
  const auto numbers = numbersOf(outputs, options.reduceOp);
  for (size_t i = 0; i < inputs.size(); ++i) {
    checkWhole(inputs[i], outputs[i], size_);
  }
  return collective(
      {type, "orccl:reduce_scatter", device, inputs, outputs, options.timeout},
      [&](Communicator& group, orStream_t stream) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          const Dense input(premultiplied(inputs[i], options.reduceOp),
                            Dense::kRead);
          const Dense output(outputs[i], Dense::kWrite);
          const auto parts = partsOf(input, outputs[i].numel(), size_);
          const auto [count, type, reduction] = numbers[i];
          group.reduceScatter(
              stream, output.data(),
              std::vector<const void*>(parts.begin(), parts.end()), count, type,
              reduction);
          output.writeBack();
        }
      });
}

// [distributed.operations.reduce-scatter.coalesced] The call with one tensor is the coalesced call with a list of one.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input,
    const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output}, inputs{input};
  return reduceScatterAll(c10d::OpType::_REDUCE_SCATTER_BASE, outputs, inputs,
                          options);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs,
    const c10d::ReduceScatterOptions& options) {
  return reduceScatterAll(c10d::OpType::COALESCED, outputs, inputs, options);
}

// [distributed.operations.barrier] A barrier has no tensor, so the device is guessed from what the group has done.
c10::DeviceIndex ProcessGroupOrccl::deviceOf(
    const c10d::BarrierOptions& options) const {
  if (options.device && options.device->type() == kDeviceType &&
      options.device->has_index()) {
    return options.device->index();
  }
  if (!options.device_ids.empty()) return resolveDevice(options.device_ids[0]);
  if (bound_device_id_) return bound_device_id_->index();
  const auto groups = communicators_->all();
  return groups.empty() ? currentDevice()
                        : groups.front()->collective_stream.device_index();
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::barrier(
    const c10d::BarrierOptions& options) {
  return collective(
      {c10d::OpType::BARRIER,
       "orccl:barrier",
       deviceOf(options),
       {},
       {},
       options.timeout},
      [](Communicator& group, orStream_t stream) { group.barrier(stream); });
}

// [-]
}  // namespace openreg
