// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/plans.h"

#include "torch_openreg/common/orccl/collectives/reduce.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace openreg::orccl {

// [common.orccl.plans.broadcast] In a broadcast one rank puts, and all others get.
static void copyPart(char* to, const char* from, size_t size) {
  if (size && to != from) std::memcpy(to, from, size);
}

Plan planBroadcast(const Mailboxes& boxes, void* data, size_t count, int root,
                   orcclDataType_t type) {
  const size_t bytes = count * orcclTypeSize(type);
  char* device_data = static_cast<char*>(onDevice(data));
  Plan plan{.call = {orcclFuncBroadcast, type, orcclSum, root, bytes, 0},
            .total = bytes,
            .most = kStageBytes};
  if (boxes.rank == root) {
    plan.put = [=, &boxes](const Chunk& chunk) {
      copyPart(boxes.stage(root, chunk.stage), device_data + chunk.begin,
               chunk.size);
    };
  } else {
    plan.get = [=, &boxes](const Chunk& chunk) {
      copyPart(device_data + chunk.begin, boxes.stage(root, chunk.stage),
               chunk.size);
    };
  }
  return plan;
}

// [common.orccl.plans.all-gather] Each rank copies its own part directly.
Plan planAllGather(const Mailboxes& boxes, void* const* outputs,
                   const void* input, size_t count, orcclDataType_t type) {
  const size_t bytes = count * orcclTypeSize(type);
  std::vector<char*> to;
  for (int rank = 0; rank < boxes.size; ++rank) {
    to.push_back(static_cast<char*>(onDevice(outputs[rank])));
  }
  const char* from = static_cast<const char*>(onDevice(input));
  Plan plan{.call = {orcclFuncAllGather, type, orcclSum, 0, bytes, 0},
            .total = bytes,
            .most = kStageBytes};
  plan.put = [=, &boxes](const Chunk& chunk) {
    const char* part = from + chunk.begin;
    if (boxes.size > 1) {
      copyPart(boxes.stage(boxes.rank, chunk.stage), part, chunk.size);
    }
    copyPart(to[boxes.rank] + chunk.begin, part, chunk.size);
  };
  plan.get = [=, &boxes](const Chunk& chunk) {
    for (int rank = 0; rank < boxes.size; ++rank) {
      if (rank == boxes.rank) continue;
      copyPart(to[rank] + chunk.begin, boxes.stage(rank, chunk.stage),
               chunk.size);
    }
  };
  return plan;
}

// [common.orccl.plans.reduce-scatter] A stage has a part for each rank, which that rank reduces.
Plan planReduceScatter(const Mailboxes& boxes, void* output,
                       const void* const* inputs, size_t count,
                       orcclDataType_t type, orcclRedOp_t op) {
  const size_t width = orcclTypeSize(type);
  const size_t part = kStageBytes / boxes.size / 64 * 64;
  std::vector<const char*> from;
  for (int rank = 0; rank < boxes.size; ++rank) {
    from.push_back(static_cast<const char*>(onDevice(inputs[rank])));
  }
  char* to = static_cast<char*>(onDevice(output));
  Plan plan{.call = {orcclFuncReduceScatter, type, op, 0, count * width, 0},
            .total = count,
            .most = part / width};
  plan.put = [=, &boxes](const Chunk& chunk) {
    char* stage = boxes.stage(boxes.rank, chunk.stage);
    for (int rank = 0; rank < boxes.size; ++rank) {
      if (rank == boxes.rank) continue;
      copyPart(stage + rank * part, from[rank] + chunk.begin * width,
               chunk.size * width);
    }
  };
  plan.get = [=, &boxes](const Chunk& chunk) {
    std::vector<const void*> parts;
    for (int rank = 0; rank < boxes.size; ++rank) {
      parts.push_back(rank == boxes.rank
                          ? from[rank] + chunk.begin * width
                          : boxes.stage(rank, chunk.stage) + boxes.rank * part);
    }
    reduceNumbers(to + chunk.begin * width, parts, chunk.size, type, op);
  };
  return plan;
}

// [common.orccl.plans.slices] Each rank reduces one slice of a chunk, which begins at a cache line.
namespace {

struct Slices {
  Slices(size_t count, size_t width, int ranks)
      : count(count), part((count + ranks - 1) / ranks) {
    const size_t line = 64 / width;
    part = (part + line - 1) / line * line;
  }
  size_t begin(int rank) const { return std::min(count, part * rank); }
  size_t size(int rank) const { return begin(rank + 1) - begin(rank); }

  size_t count, part;
};

// [common.orccl.plans.one-shot] A small reduction needs one round: every rank reduces all of it.
constexpr size_t kOneShotBytes = size_t{32} << 10;

Plan reduceAtOnce(const Mailboxes& boxes, char* output, const char* input,
                  const orcclCall_t& call, bool has_output) {
  Plan plan;
  const size_t width = orcclTypeSize(call.datatype);
  plan.put = [=, &boxes](const Chunk& chunk) {
    if (boxes.size == 1) return;
    copyPart(boxes.stage(boxes.rank, chunk.stage), input + chunk.begin * width,
             chunk.size * width);
  };
  if (!has_output) return plan;
  plan.get = [=, &boxes](const Chunk& chunk) {
    std::vector<const void*> inputs;
    for (int rank = 0; rank < boxes.size; ++rank) {
      inputs.push_back(rank == boxes.rank ? input + chunk.begin * width
                                          : boxes.stage(rank, chunk.stage));
    }
    reduceNumbers(output + chunk.begin * width, inputs, chunk.size,
                  call.datatype, call.op);
  };
  return plan;
}

// [common.orccl.plans.two-rounds] In a large one, each rank reduces its slice of all ranks' numbers into its own stage.
void putOthersSlices(const Mailboxes& boxes, const char* input, size_t width,
                     const Chunk& chunk) {
  const Slices slices(chunk.size, width, boxes.size);
  char* stage = boxes.stage(boxes.rank, chunk.stage);
  const char* from = input + chunk.begin * width;
  const size_t before = slices.begin(boxes.rank) * width;
  const size_t after = slices.begin(boxes.rank + 1) * width;
  copyPart(stage, from, before);
  copyPart(stage + after, from + after, chunk.size * width - after);
}

/// `output` may be null.
void reduceOwnSlice(const Mailboxes& boxes, char* output, const char* input,
                    const orcclCall_t& call, const Chunk& chunk) {
  const size_t width = orcclTypeSize(call.datatype);
  const Slices slices(chunk.size, width, boxes.size);
  const size_t begin = slices.begin(boxes.rank) * width;
  const size_t size = slices.size(boxes.rank);
  const size_t place = chunk.begin * width + begin;
  std::vector<const void*> inputs;
  for (int rank = 0; rank < boxes.size; ++rank) {
    inputs.push_back(rank == boxes.rank
                         ? input + place
                         : boxes.stage(rank, chunk.stage) + begin);
  }
  char* result = boxes.stage(boxes.rank, chunk.stage) + begin;
  reduceNumbers(result, inputs, size, call.datatype, call.op);
  if (output) copyPart(output + place, result, size * width);
}

// [common.orccl.plans.second-round] In the second round the ranks exchange the results.
void getOthersSlices(const Mailboxes& boxes, char* output, size_t width,
                     const Chunk& chunk) {
  const Slices slices(chunk.size, width, boxes.size);
  for (int rank = 0; rank < boxes.size; ++rank) {
    if (rank == boxes.rank) continue;
    const size_t begin = slices.begin(rank) * width;
    copyPart(output + chunk.begin * width + begin,
             boxes.stage(rank, chunk.stage) + begin, slices.size(rank) * width);
  }
}

Plan reduceInSlices(const Mailboxes& boxes, char* output, const char* input,
                    const orcclCall_t& call, bool has_output) {
  Plan plan;
  const size_t width = orcclTypeSize(call.datatype);
  plan.put = [=, &boxes](const Chunk& chunk) {
    putOthersSlices(boxes, input, width, chunk);
  };
  plan.combine = [=, &boxes](const Chunk& chunk) {
    reduceOwnSlice(boxes, has_output ? output : nullptr, input, call, chunk);
  };
  if (has_output) {
    plan.get = [=, &boxes](const Chunk& chunk) {
      getOthersSlices(boxes, output, width, chunk);
    };
  }
  return plan;
}

// [-]
}  // namespace

// [common.orccl.plans.reduction] The size alone decides, so all ranks choose the same way.
Plan planReduction(const Mailboxes& boxes, void* output, const void* input,
                   size_t count, orcclCall_t call, bool has_output) {
  const size_t width = orcclTypeSize(call.datatype);
  call.bytes = count * width;
  const bool at_once = boxes.size == 1 || call.bytes <= kOneShotBytes;
  Plan plan = (at_once ? reduceAtOnce : reduceInSlices)(
      boxes, static_cast<char*>(onDevice(output)),
      static_cast<const char*>(onDevice(input)), call, has_output);
  plan.call = call;
  plan.total = count;
  plan.most = kStageBytes / width;
  return plan;
}

// [-]
}  // namespace openreg::orccl
