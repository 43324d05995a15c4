// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/plans.h"

#include "torch_openreg/chapters/distributed/communicator/reduce.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace openreg {

// [distributed.plans.broadcast] In a broadcast one rank puts, and all others get.
static void copyPart(char* to, const char* from, size_t size) {
  if (size && to != from) std::memcpy(to, from, size);
}

Plan planBroadcast(const Mailboxes& boxes, void* data, size_t bytes, int root,
                   NumberType type) {
  char* device_data = static_cast<char*>(onDevice(data));
  Plan plan{.signature = {.operation = Operation::broadcast,
                          .type = type,
                          .root = root,
                          .bytes = bytes},
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

// [distributed.plans.all-gather] Each rank copies its own part directly.
Plan planAllGather(const Mailboxes& boxes, std::span<void* const> outputs,
                   const void* input, size_t bytes, NumberType type) {
  std::vector<char*> to;
  for (void* output : outputs) {
    to.push_back(static_cast<char*>(onDevice(output)));
  }
  const char* from = static_cast<const char*>(onDevice(input));
  Plan plan{.signature = {.operation = Operation::all_gather,
                          .type = type,
                          .bytes = bytes},
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

// [distributed.plans.reduce-scatter] A stage has a part for each rank, which that rank reduces.
Plan planReduceScatter(const Mailboxes& boxes, void* output,
                       std::span<const void* const> inputs, size_t count,
                       NumberType type, Reduction reduction) {
  const size_t width = sizeOf(type);
  const size_t part = kStageBytes / boxes.size / 64 * 64;
  std::vector<const char*> from;
  for (const void* input : inputs) {
    from.push_back(static_cast<const char*>(onDevice(input)));
  }
  char* to = static_cast<char*>(onDevice(output));
  Plan plan{.signature = {.operation = Operation::reduce_scatter,
                          .type = type,
                          .reduction = reduction,
                          .bytes = count * width},
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
    reduceNumbers(to + chunk.begin * width, parts, chunk.size, type, reduction);
  };
  return plan;
}

// [distributed.plans.slices] Each rank reduces one slice of a chunk, which begins at a cache line.
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

// [distributed.plans.one-shot] A small reduction needs one round: every rank reduces all of it.
constexpr size_t kOneShotBytes = size_t{32} << 10;

Plan reduceAtOnce(const Mailboxes& boxes, char* output, const char* input,
                  const Signature& signature, bool has_output) {
  Plan plan;
  const size_t width = sizeOf(signature.type);
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
                  signature.type, signature.reduction);
  };
  return plan;
}

// [distributed.plans.two-rounds] In a large one, each rank reduces its slice of everybody's numbers into its own stage.
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
                    const Signature& signature, const Chunk& chunk) {
  const size_t width = sizeOf(signature.type);
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
  reduceNumbers(result, inputs, size, signature.type, signature.reduction);
  if (output) copyPart(output + place, result, size * width);
}

// [distributed.plans.second-round] In the second round the ranks exchange the results.
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
                    const Signature& signature, bool has_output) {
  Plan plan;
  const size_t width = sizeOf(signature.type);
  plan.put = [=, &boxes](const Chunk& chunk) {
    putOthersSlices(boxes, input, width, chunk);
  };
  plan.combine = [=, &boxes](const Chunk& chunk) {
    reduceOwnSlice(boxes, has_output ? output : nullptr, input, signature,
                   chunk);
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

// [distributed.plans.reduction] The size alone decides, so all ranks choose the same way.
Plan planReduction(const Mailboxes& boxes, void* output, const void* input,
                   size_t count, Signature signature, bool has_output) {
  const size_t width = sizeOf(signature.type);
  signature.bytes = count * width;
  const bool at_once = boxes.size == 1 || signature.bytes <= kOneShotBytes;
  Plan plan = (at_once ? reduceAtOnce : reduceInSlices)(
      boxes, static_cast<char*>(onDevice(output)),
      static_cast<const char*>(onDevice(input)), signature, has_output);
  plan.signature = signature;
  plan.total = count;
  plan.most = kStageBytes / width;
  return plan;
}

// [-]
}  // namespace openreg
