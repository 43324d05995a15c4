// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/orccl/collectives/calls.h"
#include "torch_openreg/common/orccl/group/comm.h"
#include "torch_openreg/common/orccl/group/result.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace openreg::orccl {

// [common.orccl.pipeline] A collective says what happens to one chunk, and the pipeline moves all of them.
/// A part of a collective's data that fits into a stage.
struct Chunk {
  size_t begin, size;  ///< bytes; `size` is at most the plan's `most`
  /// Which stage holds it, on every rank.
  size_t stage;
};

/// What one rank does in a collective. `put` fills this rank's stage. When all
/// ranks have done that, `combine` may read all stages, and may write a part of
/// its own that nobody reads until all ranks have combined. Then `get` may
/// read all stages. `put` and `get` may be empty; without `combine`, `get`
/// comes a round earlier. They run on the device.
struct Plan {
  orcclCall_t call{};  ///< compared before any data is used
  size_t total = 0;    ///< bytes of all chunks
  size_t most = 1;     ///< bytes of one chunk
  std::function<void(const Chunk&)> put{};      ///< fills the own stage
  std::function<void(const Chunk&)> combine{};  ///< reduces a slice
  std::function<void(const Chunk&)> get{};      ///< reads all stages
};

/// The plan of the collective `call.func`. The addresses are those of orMalloc,
/// and the arguments were checked. There is one input for each rank in a
/// reduce_scatter, one output for each rank in an all_gather, and otherwise
/// one.
Plan planOf(const Mailboxes& boxes, const orcclCall_t& call,
            const void* const* inputs, void* const* outputs);

// [common.orccl.pipeline.lag] A rank works on two more chunks before it waits for the others' work on one.
inline constexpr size_t kLag = 2;
// A chunk is combined one lag after it was put, read after two, and known to be
// read by all ranks after three.
static_assert(kStages >= 3 * kLag);

/// A call while it runs. Step s puts chunk s, combines the chunk that was put a
/// lag earlier, and gets the one before that. A call of nothing has one empty
/// chunk, so that its ranks compare what they called.
struct Call {
  std::shared_ptr<Comm> comm;
  Plan plan;
  size_t first_stage;
  uint32_t chunks = static_cast<uint32_t>(
      std::max<size_t>((plan.total + plan.most - 1) / plan.most, 1));
  uint32_t lag = static_cast<uint32_t>(std::min<size_t>(kLag, chunks));

  /// How many steps end with a round. The last steps need none.
  uint32_t rounds() const { return chunks + (plan.combine ? lag : 0); }
  uint32_t steps() const { return rounds() + lag; }

  // [common.orccl.pipeline.step] One kernel does the work of a step, and tells the peers at its end.
  void run(uint32_t step, uint32_t round) const {
    if (comm->isAborted()) return;
    if (step == 0) callOf(comm->rank) = plan.call;
    if (step == lag && !ranksAgree()) return;
    perform(plan.get, step, plan.combine ? 2 * lag : lag);
    perform(plan.combine, step, lag);
    perform(plan.put, step, 0);
    if (step < rounds()) comm->boxes.finishRound(round);
  }

  void perform(const std::function<void(const Chunk&)>& part, uint32_t step,
               uint32_t delay) const {
    if (!part || step < delay || step - delay >= chunks) return;
    const size_t number = step - delay, begin = number * plan.most;
    part(
        {begin, std::min(plan.most, plan.total - begin), first_stage + number});
  }

  orcclCall_t& callOf(int rank) const {
    return comm->boxes.of(rank).calls[plan.call.number % 2];
  }
  bool ranksAgree() const {
    std::vector<orcclCall_t> calls;
    for (int rank = 0; rank < comm->size; ++rank) calls.push_back(callOf(rank));
    std::string problem = findDisagreement(calls);
    if (problem.empty()) return true;
    comm->fail(std::move(problem));
    return false;
  }
};

// [common.orccl.pipeline.enqueue] Each step is a kernel, and from the second lag on a wait comes before it.
/// Stages and calls are counted alike on all ranks, because all make the same
/// calls.
class Pipeline {
 public:
  /// The mailboxes need not be mapped yet.
  explicit Pipeline(std::shared_ptr<Comm> comm) : comm_(std::move(comm)) {}

  /// Enqueues the work of one collective. The group must be connected.
  void enqueue(orStream_t stream, Plan plan) {
    plan.call.number = ++calls_;
    const char* name = nameOf(plan.call.func);
    const std::shared_ptr<const Call> call(
        new Call{comm_, std::move(plan), stages_used_});
    const uint32_t first_round = comm_->boxes.rounds + 1;
    comm_->boxes.rounds += call->rounds();
    stages_used_ += call->chunks;
    for (uint32_t step = 0; step < call->steps(); ++step) {
      const uint32_t round = first_round + step;
      if (step >= call->lag && comm_->size > 1) {
        check(orStreamWaitValue32(stream, comm_->boxes.roundNumber(),
                                  round - call->lag));
      }
      check(launch(stream, name,
                   [call, step, round] { call->run(step, round); }));
    }
  }

 private:
  std::shared_ptr<Comm> comm_;
  size_t stages_used_ = 0;
  uint64_t calls_ = 0;
};

// [-]
}  // namespace openreg::orccl
