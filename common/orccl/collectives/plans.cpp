// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/pipeline.h"
#include "torch_openreg/common/orccl/collectives/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace openreg::orccl {
namespace {

// [common.orccl.plans.work] The parts of all plans copy bytes, or reduce what lies at one place of all stages.
/// One rank's part of a collective, as its kernels see it.
struct Work {
  const Mailboxes& boxes;
  orcclCall_t call;
  std::vector<const char*> from;
  std::vector<char*> to;

  int rank() const { return boxes.rank; }
  /// Reduces `size` bytes of each rank: those at `place` of the stages, and
  /// `own` of this rank.
  void reduce(char* output, const char* own, const Chunk& chunk, size_t place,
              size_t size) const {
    std::vector<const void*> inputs;
    for (int peer = 0; peer < boxes.size; ++peer) {
      inputs.push_back(peer == rank() ? own
                                      : boxes.stage(peer, chunk.stage) + place);
    }
    reduceNumbers(output, inputs, size / orcclTypeSize(call.datatype),
                  call.datatype, call.op);
  }
};

void copyPart(char* to, const char* from, size_t size) {
  if (size && to != from) std::memcpy(to, from, size);
}

// [common.orccl.plans.broadcast] In a broadcast the root copies each chunk to its stage, and all other ranks copy it from there.
void planBroadcast(Plan& plan, const Work& work) {
  const int root = work.call.root;
  const auto put = [work, root](const Chunk& chunk) {
    copyPart(work.boxes.stage(root, chunk.stage), work.from[0] + chunk.begin,
             chunk.size);
  };
  const auto get = [work, root](const Chunk& chunk) {
    copyPart(work.to[0] + chunk.begin, work.boxes.stage(root, chunk.stage),
             chunk.size);
  };
  if (work.rank() == root) {
    plan.put = put;
  } else {
    plan.get = get;
  }
}

// [common.orccl.plans.all-gather] Each rank copies its own part directly.
void planAllGather(Plan& plan, const Work& work) {
  plan.put = [work](const Chunk& chunk) {
    const char* part = work.from[0] + chunk.begin;
    if (work.boxes.size > 1) {
      copyPart(work.boxes.stage(work.rank(), chunk.stage), part, chunk.size);
    }
    copyPart(work.to[work.rank()] + chunk.begin, part, chunk.size);
  };
  plan.get = [work](const Chunk& chunk) {
    for (int peer = 0; peer < work.boxes.size; ++peer) {
      if (peer == work.rank()) continue;
      copyPart(work.to[peer] + chunk.begin, work.boxes.stage(peer, chunk.stage),
               chunk.size);
    }
  };
}

// [common.orccl.plans.reduce-scatter] A stage has a part for each rank, which that rank reduces.
void planReduceScatter(Plan& plan, const Work& work) {
  plan.most = kStageBytes / work.boxes.size / 64 * 64;
  plan.put = [work, part = plan.most](const Chunk& chunk) {
    char* stage = work.boxes.stage(work.rank(), chunk.stage);
    for (int peer = 0; peer < work.boxes.size; ++peer) {
      if (peer == work.rank()) continue;
      copyPart(stage + peer * part, work.from[peer] + chunk.begin, chunk.size);
    }
  };
  plan.get = [work, part = plan.most](const Chunk& chunk) {
    work.reduce(work.to[0] + chunk.begin, work.from[work.rank()] + chunk.begin,
                chunk, work.rank() * part, chunk.size);
  };
}

// [common.orccl.plans.one-shot] A small reduction needs one round: every rank reduces all of it.
constexpr size_t kOneShotBytes = size_t{32} << 10;

void planOneShot(Plan& plan, const Work& work, bool has_output) {
  plan.put = [work](const Chunk& chunk) {
    if (work.boxes.size == 1) return;
    copyPart(work.boxes.stage(work.rank(), chunk.stage),
             work.from[0] + chunk.begin, chunk.size);
  };
  if (!has_output) return;
  plan.get = [work](const Chunk& chunk) {
    work.reduce(work.to[0] + chunk.begin, work.from[0] + chunk.begin, chunk, 0,
                chunk.size);
  };
}

// [common.orccl.plans.slices] In a large one each rank reduces one slice of a chunk, which begins at a cache line.
struct Slices {
  Slices(size_t size, int ranks)
      : size(size), each(((size + ranks - 1) / ranks + 63) / 64 * 64) {}
  size_t begin(int rank) const { return std::min(size, each * rank); }
  size_t sizeOf(int rank) const { return begin(rank + 1) - begin(rank); }
  size_t size, each;
};

// [common.orccl.plans.two-rounds] First each rank reduces its slice of all ranks' numbers into its own stage, and then the ranks exchange the results.
void planTwoRounds(Plan& plan, const Work& work, bool has_output) {
  const int rank = work.rank();
  plan.put = [work, rank](const Chunk& chunk) {
    const Slices slices(chunk.size, work.boxes.size);
    char* stage = work.boxes.stage(rank, chunk.stage);
    const char* from = work.from[0] + chunk.begin;
    const size_t after = slices.begin(rank + 1);
    copyPart(stage, from, slices.begin(rank));
    copyPart(stage + after, from + after, chunk.size - after);
  };
  plan.combine = [work, rank, has_output](const Chunk& chunk) {
    const Slices slices(chunk.size, work.boxes.size);
    const size_t begin = slices.begin(rank), size = slices.sizeOf(rank);
    const size_t place = chunk.begin + begin;
    char* sum = work.boxes.stage(rank, chunk.stage) + begin;
    work.reduce(sum, work.from[0] + place, chunk, begin, size);
    if (has_output) copyPart(work.to[0] + place, sum, size);
  };
  if (!has_output) return;
  plan.get = [work, rank](const Chunk& chunk) {
    const Slices slices(chunk.size, work.boxes.size);
    for (int peer = 0; peer < work.boxes.size; ++peer) {
      if (peer == rank) continue;
      const size_t begin = slices.begin(peer);
      copyPart(work.to[0] + chunk.begin + begin,
               work.boxes.stage(peer, chunk.stage) + begin,
               slices.sizeOf(peer));
    }
  };
}

// [-]
}  // namespace

// [common.orccl.plans.choose] The plan follows from the arguments of the call alone, so all ranks choose the same one.
Plan planOf(const Mailboxes& boxes, const orcclCall_t& call,
            const void* const* inputs, void* const* outputs) {
  Plan plan{.call = call, .total = call.bytes, .most = kStageBytes};
  Work work{boxes, call, {}, {}};
  const bool scatters = call.func == orcclFuncReduceScatter;
  const bool gathers = call.func == orcclFuncAllGather;
  for (int i = 0; i < (scatters ? boxes.size : 1); ++i) {
    work.from.push_back(static_cast<const char*>(onDevice(inputs[i])));
  }
  for (int i = 0; i < (gathers ? boxes.size : 1); ++i) {
    work.to.push_back(static_cast<char*>(onDevice(outputs[i])));
  }
  if (call.func == orcclFuncBroadcast) {
    planBroadcast(plan, work);
  } else if (gathers) {
    planAllGather(plan, work);
  } else if (scatters) {
    planReduceScatter(plan, work);
  } else {
    const bool has_output =
        call.func == orcclFuncAllReduce || boxes.rank == call.root;
    const bool at_once = boxes.size == 1 || call.bytes <= kOneShotBytes;
    (at_once ? planOneShot : planTwoRounds)(plan, work, has_output);
  }
  return plan;
}

// [-]
}  // namespace openreg::orccl
