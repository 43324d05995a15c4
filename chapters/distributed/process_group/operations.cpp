// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/process_group.h"

#include "torch_openreg/chapters/device/runtime.h"

#include <algorithm>

namespace openreg {
namespace {

// [distributed.operations.parts] A tensor for the whole group has a part for each rank, one after the other.
using Tensors = ProcessGroupOrccl::Tensors;

std::vector<Dense> denseOf(at::TensorList tensors, Dense::Use use,
                           const c10d::ReduceOp* reduction = nullptr) {
  std::vector<Dense> dense;
  for (const auto& tensor : tensors) {
    dense.emplace_back(premultiplied(tensor, reduction), use);
  }
  return dense;
}

/// `count` addresses: of the tensors, or of the parts of the only one.
std::vector<void*> partsOf(const std::vector<Dense>& tensors, size_t count) {
  std::vector<void*> parts;
  for (const auto& tensor : tensors) {
    const size_t each = count / tensors.size();
    for (size_t part = 0; part < each; ++part) {
      parts.push_back(tensor.data() + part * tensor.bytes() / each);
    }
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

// [distributed.operations.collective] Arguments are checked before `start`; copies, which need the stream, are made inside it.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::collective(
    const Call& call, orcclFunc_t func, c10::ArrayRef<Part> parts,
    const c10d::ReduceOp* reduction) {
  const bool scatters = func == orcclFuncReduceScatter;
  const bool gathers = func == orcclFuncAllGather;
  std::vector<Collective> calls;
  for (const auto& [from, to, root] : parts) {
    const at::Tensor& one = scatters || from.empty() ? to[0] : from[0];
    calls.push_back({callOf(func, one, reduction, root)});
  }
  return start(
      call, [](DeviceCommunicator& own) { return own.collective_stream; },
      [&](Communicator& communicator, orStream_t stream) {
        std::vector<std::vector<Dense>> from, to;
        for (const Part& part : parts) {
          from.push_back(denseOf(part.from, Dense::kRead, reduction));
          to.push_back(denseOf(part.to, Dense::kWrite));
        }
        size_t made = 0;
        try {
          for (size_t i = 0; i < parts.size(); ++i) {
            const size_t ins = from[i].size(), outs = to[i].size();
            calls[i].inputs = partsOf(from[i], scatters ? size_ : ins);
            calls[i].outputs = partsOf(to[i], gathers ? size_ : outs);
            communicator.collective(stream, calls[i]);
            ++made;
            for (const auto& output : to[i]) output.writeBack();
          }
        } catch (...) {  // After the first call the peers expect all of them.
          if (made && made < parts.size()) communicator.abort("");
          throw;
        }
      });
}

// [distributed.operations.each] Tensors that are coalesced are one work, and one call of the library for each.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::collectiveOfEach(
    const Call& call, orcclFunc_t func, const c10d::ReduceOp* reduction) {
  const auto& [inputs, outputs] = std::tie(call.inputs, call.outputs);
  checkCount("outputs", outputs.size(), inputs.size());
  std::vector<Part> parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (func == orcclFuncAllGather) checkWhole(outputs[i], inputs[i], size_);
    if (func == orcclFuncReduceScatter) {
      checkWhole(inputs[i], outputs[i], size_);
    }
    parts.push_back({inputs[i], outputs[i]});
  }
  return collective(call, func, parts, reduction);
}

// [distributed.operations.reductions] A reduction with one tensor is the coalesced one with a list of one.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allreduce(
    Tensors& tensors, const c10d::AllreduceOptions& options) {
  checkCount("tensors", tensors.size(), 1);
  return collectiveOfEach({c10d::OpType::ALLREDUCE, "orccl:all_reduce", tensors,
                           tensors, options.timeout},
                          orcclFuncAllReduce, &options.reduceOp);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return collectiveOfEach(
      {c10d::OpType::ALLREDUCE_COALESCED, "orccl:all_reduce", tensors, tensors,
       options.timeout},
      orcclFuncAllReduce, &options.reduceOp);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input,
    const c10d::ReduceScatterOptions& options) {
  return collectiveOfEach({c10d::OpType::_REDUCE_SCATTER_BASE,
                           "orccl:reduce_scatter",
                           {input},
                           {output},
                           options.timeout},
                          orcclFuncReduceScatter, &options.reduceOp);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs,
    const c10d::ReduceScatterOptions& options) {
  return collectiveOfEach({c10d::OpType::COALESCED, "orccl:reduce_scatter",
                           inputs, outputs, options.timeout},
                          orcclFuncReduceScatter, &options.reduceOp);
}

// [distributed.operations.gathers] The outputs of all ranks may be one tensor, or a list for each of several tensors.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::_allgather_base(
    at::Tensor& output, at::Tensor& input,
    const c10d::AllgatherOptions& options) {
  return collectiveOfEach({c10d::OpType::_ALLGATHER_BASE,
                           "orccl:all_gather",
                           {input},
                           {output},
                           options.timeout},
                          orcclFuncAllGather);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return collectiveOfEach({c10d::OpType::COALESCED, "orccl:all_gather", inputs,
                           outputs, options.timeout},
                          orcclFuncAllGather);
}

// [distributed.operations.rooted] Only the root of a broadcast is read, and only the root of a reduction changes.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::broadcast(
    Tensors& tensors, const c10d::BroadcastOptions& options) {
  checkCount("tensors", tensors.size(), 1);
  checkRank("The root of a broadcast", options.rootRank);
  const auto root = static_cast<int>(options.rootRank);
  const Part part =
      rank_ == root ? Part{tensors, {}, root} : Part{{}, tensors, root};
  return collective({c10d::OpType::BROADCAST, "orccl:broadcast", tensors,
                     tensors, options.timeout},
                    orcclFuncBroadcast, part);
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduce(
    Tensors& tensors, const c10d::ReduceOptions& options) {
  checkCount("tensors", tensors.size(), 1);
  checkRank("The root of a reduction", options.rootRank);
  const auto root = static_cast<int>(options.rootRank);
  const at::TensorList all(tensors);
  const Part part{all, all.slice(0, rank_ == root ? 1 : 0), root};
  return collective(
      {c10d::OpType::REDUCE, "orccl:reduce", tensors, tensors, options.timeout},
      orcclFuncReduce, part, &options.reduceOp);
}

// [distributed.operations.uneven] The sizes in a list may differ between ranks, and then the list is moved or reduced part by part.
static bool areOfOneSize(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
    return tensor.numel() == tensors[0].numel();
  });
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::allgather(
    Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  checkCount("inputs", inputs.size(), 1);
  checkCount("lists of outputs", outputs.size(), 1);
  checkCount("outputs", outputs[0].size(), size_);
  const Call call{c10d::OpType::ALLGATHER, "orccl:all_gather", inputs,
                  outputs[0], options.timeout};
  for (const auto& output : outputs[0]) checkSameType(inputs[0], output);
  checkSameSize(inputs[0], outputs[0][rank_]);
  if (!areOfOneSize(outputs[0])) {
    return exchangeWithAll(call, outputs[0], Tensors(size_, inputs[0]));
  }
  return collective(call, orcclFuncAllGather, Part{inputs, outputs[0]});
}

// [distributed.operations.uneven.reduce] Each rank's part is then a reduction of its own, to that rank.
ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::reduce_scatter(
    Tensors& outputs, Lists& inputs,
    const c10d::ReduceScatterOptions& options) {
  checkCount("outputs", outputs.size(), 1);
  checkCount("lists of inputs", inputs.size(), 1);
  checkCount("inputs", inputs[0].size(), size_);
  const Call call{c10d::OpType::REDUCE_SCATTER, "orccl:reduce_scatter",
                  inputs[0], outputs, options.timeout};
  for (const auto& input : inputs[0]) checkSameType(input, outputs[0]);
  checkSameSize(inputs[0][rank_], outputs[0]);
  const bool is_even = areOfOneSize(inputs[0]);
  std::vector<Part> parts;
  if (is_even) parts.push_back({inputs[0], outputs, 0});
  for (int rank = 0; rank < size_ && !is_even; ++rank) {
    const at::TensorList all(outputs);
    parts.push_back(
        {inputs[0][rank], all.slice(0, rank == rank_ ? 1 : 0), rank});
  }
  return collective(call, is_even ? orcclFuncReduceScatter : orcclFuncReduce,
                    parts, &options.reduceOp);
}

// [distributed.operations.barrier] A barrier has no tensor, so the device is guessed from what the rank has done.
c10::DeviceIndex ProcessGroupOrccl::barrierDevice(
    const c10d::BarrierOptions& options) const {
  if (options.device && options.device->type() == kDeviceType &&
      options.device->has_index()) {
    return options.device->index();
  }
  if (!options.device_ids.empty()) return resolveDevice(options.device_ids[0]);
  if (bound_device_id_) return bound_device_id_->index();
  return communicators_->firstDevice().value_or(currentDevice());
}

ProcessGroupOrccl::WorkPtr ProcessGroupOrccl::barrier(
    const c10d::BarrierOptions& options) {
  return start(
      {c10d::OpType::BARRIER,
       "orccl:barrier",
       {},
       {},
       options.timeout,
       barrierDevice(options)},
      [](DeviceCommunicator& own) { return own.collective_stream; },
      [](Communicator& communicator, orStream_t stream) {
        communicator.collective(stream, {});
      });
}

// [-]
}  // namespace openreg
