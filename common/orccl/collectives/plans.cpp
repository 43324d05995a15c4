// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/pipeline.h"
#include "torch_openreg/common/orccl/collectives/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace openreg::orccl {

// [common.orccl.plans.table] Collectives differ in which parts a rank has and which it wants, so a table describes all of them.
static Part partOf(const Plan& plan, int r, int rank, const void* const* inputs,
                   void* const* outputs) {
  const auto& [func, type, op, root, bytes, number] = plan.call;
  const auto in = [&](int i) { return static_cast<const char*>(inputs[i]); };
  const auto out = [&](int i) { return static_cast<char*>(outputs[i]); };
  const bool is_own = r == rank;
  if (func == orcclFuncReduceScatter) {
    return {in(r), is_own ? out(0) : nullptr, bytes};
  }
  if (func == orcclFuncAllGather) {
    return {is_own ? in(0) : nullptr, out(r), bytes};
  }
  if (!reduces(func)) {  // From the root, or nothing at all.
    if (r != root) return {};
    return {is_own ? in(0) : nullptr, out(0), bytes};
  }
  const size_t begin = plan.is_divided ? std::min(r * plan.total, bytes) : 0;
  if (!plan.is_divided && !is_own) return {};
  const bool is_wanted = func == orcclFuncAllReduce || rank == root;
  return {in(0) + begin, is_wanted ? out(0) + begin : nullptr,
          std::min(plan.total, bytes - begin)};
}

// [common.orccl.plans.choose] The plan follows from the arguments of the call alone, so all ranks choose the same one.
/// Up to this size, a reduction takes one round, and every rank reduces all of
/// it.
constexpr size_t kOneShotBytes = size_t{32} << 10;

Plan planOf(const Comm& comm, const Lane& lane, const orcclCall_t& call,
            const void* const* inputs, void* const* outputs) {
  const size_t size = comm.size;
  Plan plan{.call = call, .total = call.bytes, .most = lane.stageBytes()};
  const bool scatters = call.func == orcclFuncReduceScatter;
  plan.has_two_rounds =
      reduces(call.func) && !scatters && size > 1 && call.bytes > kOneShotBytes;
  plan.is_divided = scatters || plan.has_two_rounds;
  // A part begins at a cache line, and no number straddles two parts.
  if (plan.is_divided) plan.most = kStageBytes / size / 64 * 64;
  if (plan.has_two_rounds) {
    plan.total = (call.bytes + 64 * size - 1) / (64 * size) * 64;
  }
  for (int r = 0; r < comm.size; ++r) {
    const auto [from, to, bytes] = partOf(plan, r, comm.rank, inputs, outputs);
    const bool changes = to && (to != from || reduces(call.func));
    if (accessesAreWanted() && bytes && from)
      plan.accesses.push_back({from, bytes, 0, nullptr, nullptr, false});
    if (accessesAreWanted() && bytes && changes)
      plan.accesses.push_back({to, bytes, 0, nullptr, nullptr, true});
    plan.parts.push_back({onDevice(from), onDevice(to), bytes});
  }
  return plan;
}

// [common.orccl.plans.places] The last chunk of a part may be short, and a later one empty.
char* Call::staged(int owner, int part, const Chunk& chunk) const {
  return comm->boxes.stage(owner, lane, chunk.stage) +
         (plan.is_divided ? part * plan.most : 0);
}

size_t Call::sizeOf(int part, const Chunk& chunk) const {
  const size_t all = plan.parts[part].size;
  return std::min(chunk.size, all - std::min(all, chunk.begin));
}

static void copy(char* to, const char* from, size_t size) {
  if (size && to != from) std::memcpy(to, from, size);
}

// [common.orccl.plans.move] A rank stages what its peers need, and copies its own part while that is in the cache.
void Call::put(const Chunk& chunk) const {
  const bool moves = !reduces(plan.call.func);
  for (int part = 0; part < comm->size; ++part) {
    const auto& [from, to, size] = plan.parts[part];
    if (!from || plan.is_divided == (part == comm->rank)) continue;
    const size_t bytes = sizeOf(part, chunk);
    const char* data = from + chunk.begin;
    if (lane.size > 1) copy(staged(comm->rank, part, chunk), data, bytes);
    if (to && moves) copy(to + chunk.begin, data, bytes);
  }
}

void Call::get(const Chunk& chunk) const {
  const bool sums = reduces(plan.call.func) && !plan.has_two_rounds;
  for (int part = 0; part < comm->size; ++part) {
    char* const to = plan.parts[part].to;
    if (to && part != comm->rank) {
      copy(to + chunk.begin, staged(part, part, chunk), sizeOf(part, chunk));
    } else if (to && sums) {
      reduce(to + chunk.begin, chunk);
    }
  }
}

// [common.orccl.plans.reduce] Each number is reduced by one rank, in the order of the ranks, or by all in that order.
void Call::reduce(char* output, const Chunk& chunk) const {
  const int rank = comm->rank;
  std::vector<const void*> inputs;
  for (int peer = 0; peer < comm->size; ++peer) {
    inputs.push_back(peer == rank ? plan.parts[rank].from + chunk.begin
                                  : staged(peer, rank, chunk));
  }
  reduceNumbers(output, inputs,
                sizeOf(rank, chunk) / orcclTypeSize(plan.call.datatype),
                plan.call.datatype, plan.call.op);
}

void Call::combine(const Chunk& chunk) const {
  const int rank = comm->rank;
  char* const result = staged(rank, rank, chunk);
  reduce(result, chunk);
  if (char* to = plan.parts[rank].to) {
    copy(to + chunk.begin, result, sizeOf(rank, chunk));
  }
}

// [-]
}  // namespace openreg::orccl
