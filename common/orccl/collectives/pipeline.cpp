// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/pipeline.h"

#include "torch_openreg/common/orccl/group/result.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace openreg::orccl {
namespace {

// [common.orccl.pipeline.lag] A rank works on two more chunks before it waits for the others' work on one.
constexpr size_t kLag = 2;
// A chunk is combined one lag after it was put, read after two, and known to be
// read by all ranks after three.
static_assert(kStages >= 3 * kLag);

/// A call while it runs. Step s puts chunk s, combines the chunk that was put a
/// lag earlier, and gets the one before that.
class Call {
 public:
  Call(std::shared_ptr<Comm> comm, Plan plan, uint64_t number,
       size_t first_stage);

  uint32_t chunks() const { return chunks_; }
  uint32_t lag() const { return lag_; }
  /// How many steps end with a round. The last steps need none.
  uint32_t rounds() const { return chunks_ + (plan_.combine ? lag_ : 0); }
  uint32_t steps() const { return rounds() + lag_; }
  void run(uint32_t step, uint32_t round) const;

 private:
  void perform(const std::function<void(const Chunk&)>& part, uint32_t step,
               uint32_t delay) const;
  bool ranksAgree() const;

  const std::shared_ptr<Comm> comm_;
  const Plan plan_;
  const uint64_t number_;
  const size_t first_stage_;
  uint32_t chunks_, lag_;
};

// [common.orccl.pipeline.call] A call of nothing has one empty chunk, so that its ranks compare what they called.
Call::Call(std::shared_ptr<Comm> comm, Plan plan, uint64_t number,
           size_t first_stage)
    : comm_(std::move(comm)),
      plan_(std::move(plan)),
      number_(number),
      first_stage_(first_stage) {
  const size_t chunks = (plan_.total + plan_.most - 1) / plan_.most;
  chunks_ = static_cast<uint32_t>(std::max<size_t>(chunks, 1));
  lag_ = static_cast<uint32_t>(std::min<size_t>(kLag, chunks_));
}

void Call::perform(const std::function<void(const Chunk&)>& part, uint32_t step,
                   uint32_t delay) const {
  if (!part || step < delay || step - delay >= chunks_) return;
  const size_t number = step - delay;
  const size_t begin = number * plan_.most;
  part({begin, std::min(plan_.most, plan_.total - begin),
        first_stage_ + number});
}

// [common.orccl.pipeline.step] One kernel does the work of a step, and tells the peers at its end.
void Call::run(uint32_t step, uint32_t round) const {
  if (comm_->isAborted()) return;
  if (step == 0) {
    comm_->boxes.of(comm_->rank).calls[number_ % 2] = plan_.call;
  }
  if (step == lag_ && !ranksAgree()) return;
  perform(plan_.get, step, plan_.combine ? 2 * lag_ : lag_);
  perform(plan_.combine, step, lag_);
  perform(plan_.put, step, 0);
  if (step < rounds()) comm_->boxes.finishRound(round);
}

bool Call::ranksAgree() const {
  std::vector<orcclCall_t> calls;
  for (int rank = 0; rank < comm_->size; ++rank) {
    calls.push_back(comm_->boxes.of(rank).calls[number_ % 2]);
  }
  std::string problem = findDisagreement(calls);
  if (problem.empty()) return true;
  comm_->fail(std::move(problem));
  return false;
}

// [-]
}  // namespace

// [common.orccl.pipeline.enqueue] Each step is a kernel, and from the second lag on a wait comes before it.
void Pipeline::enqueue(orStream_t stream, Plan plan) {
  plan.call.number = ++calls_;
  const char* name = nameOf(plan.call.func);
  const auto call = std::make_shared<const Call>(comm_, std::move(plan), calls_,
                                                 stages_used_);
  const uint32_t first_round = comm_->boxes.rounds + 1;
  comm_->boxes.rounds += call->rounds();
  stages_used_ += call->chunks();
  for (uint32_t step = 0; step < call->steps(); ++step) {
    const uint32_t round = first_round + step;
    if (step >= call->lag() && comm_->size > 1) {
      check(orStreamWaitValue32(stream, comm_->boxes.roundNumber(),
                                round - call->lag()));
    }
    check(
        launch(stream, name, [call, step, round] { call->run(step, round); }));
  }
}

// [-]
}  // namespace openreg::orccl
