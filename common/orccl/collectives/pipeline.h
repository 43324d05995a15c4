// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/accesses.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/orccl/collectives/calls.h"
#include "torch_openreg/common/orccl/group/comm.h"
#include "torch_openreg/common/orccl/group/result.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace openreg::orccl {

// [common.orccl.pipeline] A plan says where a rank has its data and where it wants them, and the pipeline moves them chunk by chunk.
/// Part r of a call's data is what rank r sends, or what it reduces.
struct Part {
  const char* from = nullptr;  ///< where this rank has it; otherwise null
  char* to = nullptr;          ///< where this rank wants it; otherwise null
  size_t size = 0;             ///< bytes
};

/// What one rank does in a call. Addresses are those of device code.
struct Plan {
  orcclCall_t call{};  ///< compared before any data is used
  size_t total = 0;    ///< bytes of the largest part
  size_t most = 1;     ///< bytes of a part in one chunk
  /// A stage has room for all parts, and a rank stages those of its peers.
  /// Otherwise it stages its own.
  bool is_divided = false;
  bool has_two_rounds = false;       ///< each rank wants what the others reduce
  std::vector<Part> parts{};         ///< one for each rank of the group
  std::vector<orAccess> accesses{};  ///< of this rank, if they are wanted
};

/// The plan of `call.func`. The addresses are those of orMalloc, and the
/// arguments were checked. There is one input for each rank in a
/// reduce_scatter, one output for each rank in an all_gather, and otherwise
/// one. The root of a transfer is its sender.
Plan planOf(const Comm& comm, const Lane& lane, const orcclCall_t& call,
            const void* const* inputs, void* const* outputs);

// [common.orccl.pipeline.lag] A rank works on two more chunks before it waits for the others' work on one.
inline constexpr size_t kLag = 2;
// A chunk is combined one lag after it was put, read after two, and known to be
// read by all ranks after three.
static_assert(kStages >= 3 * kLag);

/// A piece of every part that fits into a stage.
struct Chunk {
  size_t begin, size;  ///< bytes; the last ones of a part may be missing
  size_t stage;        ///< which one holds it, on every rank
};

// [common.orccl.pipeline.call] Step by step, a chunk is put, combined and got, each a lag after the other.
/// A call while it runs. Step s puts chunk s, combines the chunk that was put a
/// lag earlier, and gets the one before that. With one round, the chunk is got
/// where it would be combined. A call of nothing has one empty chunk, so that
/// its ranks compare what they called.
struct Call {
  std::shared_ptr<Comm> comm;
  Lane lane;
  Plan plan;
  uint64_t exchange;  ///< the sends and receives that it is one of; else 0
  size_t first_stage;
  uint32_t first_round;
  uint32_t chunks = static_cast<uint32_t>(
      std::max<size_t>((plan.total + plan.most - 1) / plan.most, 1));
  // A rank that only receives needs no step before its first chunk.
  uint32_t lag =
      lane.isPair() ? 0 : static_cast<uint32_t>(std::min<size_t>(kLag, chunks));
  bool only_sends = lane.sender == comm->rank;

  /// How many steps end with a round. The last steps need none.
  uint32_t rounds() const { return chunks + (plan.has_two_rounds ? lag : 0); }
  uint32_t steps() const { return rounds() + lag; }
  /// What all ranks must have finished before a step: the work that it reads,
  /// or, for a sender, the last use of its stage.
  uint32_t roundBefore(uint32_t step) const {
    return first_round + step - (only_sends ? kStages : lag);
  }

  // [common.orccl.pipeline.step] One kernel does the work of a step, and tells the peers at its end.
  void run(uint32_t step) const {
    if (comm->isAborted() && !isSentAnyway(step)) return;
    if (step == 0) callOf(comm->rank) = plan.call;
    if (step == lag && !only_sends && !ranksAgree()) return;
    perform(&Call::get, step, plan.has_two_rounds ? 2 * lag : lag);
    if (plan.has_two_rounds) perform(&Call::combine, step, lag);
    perform(&Call::put, step, 0);
    if (step < rounds()) comm->boxes.finishRound(lane, first_round + step);
  }

  void perform(void (Call::*phase)(const Chunk&) const, uint32_t step,
               uint32_t delay) const {
    if (step < delay || step - delay >= chunks) return;
    const size_t number = step - delay;
    (this->*phase)({number * plan.most, plan.most, first_stage + number});
  }
  void put(const Chunk& chunk) const;      ///< fills the own stage
  void combine(const Chunk& chunk) const;  ///< reduces the own part
  void get(const Chunk& chunk) const;      ///< reads all stages

  // [common.orccl.pipeline.compare] A receiver that was told something else aborts itself, and lets the sender go on.
  orcclCall_t& callOf(int rank) const {
    return comm->boxes.stateOf(rank, lane).calls[plan.call.number % kStages];
  }
  bool ranksAgree() const {
    std::vector<int> ranks;
    std::vector<orcclCall_t> calls;
    for (int i = 0; i < lane.size; ++i) {
      ranks.push_back(lane.rankAt(i));
      calls.push_back(callOf(ranks.back()));
    }
    std::string problem = findDisagreement(ranks, calls);
    if (problem.empty()) return true;
    comm->fail(std::move(problem), exchange);
    if (lane.isPair()) comm->boxes.finishRound(lane, first_round + kFarAhead);
    return false;
  }

  // [common.orccl.pipeline.sent-anyway] A receive that fails may come before a send of the same exchange, for which the peer waits.
  /// Whether a step of an aborted rank sends: what it sends must be there, the
  /// receiver done with the stage, and nothing before it left out.
  bool isSentAnyway(uint32_t step) const {
    if (!only_sends || exchange == 0) return false;
    uint32_t& reached = comm->boxes.noted[lane.placeAt(comm->rank)];
    const uint32_t round = roundBefore(step);
    if (exchange == comm->failed_exchange &&
        static_cast<int32_t>(reached - round) >= 0) {
      return true;
    }
    reached = first_round - kFarAhead;
    return false;
  }

 private:
  char* staged(int owner, int part, const Chunk& chunk) const;
  size_t sizeOf(int part, const Chunk& chunk) const;
  void reduce(char* output, const Chunk& chunk) const;
};

// [common.orccl.pipeline.count] Stages, rounds and calls are counted alike on all ranks of a lane, because all make the same calls.
/// One step of a call.
struct Step {
  std::shared_ptr<const Call> call;
  uint32_t number;
};

/// How one rank uses a lane.
class Pipeline {
 public:
  /// The mailboxes need not be mapped yet.
  Pipeline(std::shared_ptr<Comm> comm, Lane lane)
      : lane(lane), comm_(std::move(comm)) {}

  const Lane lane;

  /// Counts a call, and returns its steps. Steps must be enqueued in the order
  /// of the calls.
  std::vector<Step> plan(orcclCall_t call, const void* const* inputs,
                         void* const* outputs, uint64_t exchange = 0) {
    call.number = ++calls_;
    auto& rounds = comm_->boxes.rounds[lane.placeAt(comm_->rank)];
    const std::shared_ptr<const Call> counted(
        new Call{comm_, lane, planOf(*comm_, lane, call, inputs, outputs),
                 exchange, stages_used_, rounds + 1});
    rounds += counted->rounds();
    stages_used_ += counted->chunks;
    std::vector<Step> steps;
    for (uint32_t i = 0; i < counted->steps(); ++i) {
      steps.push_back({counted, i});
    }
    return steps;
  }

  // [common.orccl.pipeline.enqueue] A step is a kernel, after a wait unless the lane has waited for that round before.
  /// The group must be connected. The first step announces what all of them
  /// touch: no other work comes between them.
  void enqueue(orStream_t stream, const Step& step) {
    const uint32_t round = step.call->roundBefore(step.number);
    if (lane.size > 1 && static_cast<int32_t>(round - awaited_) > 0) {
      if (accessesAreWanted()) orAnnouncePeer();
      check(orStreamWaitValue32(stream, comm_->boxes.roundNumber(lane), round));
      awaited_ = round;
    }
    beginAccesses();
    if (step.number == 0) {
      for (const orAccess& access : step.call->plan.accesses)
        orAnnounceAccess(&access);
    }
    check(launch(stream, nameOf(step.call->plan.call.func),
                 [step] { step.call->run(step.number); }));
  }

 private:
  std::shared_ptr<Comm> comm_;
  size_t stages_used_ = 0;
  uint64_t calls_ = 0;
  uint32_t awaited_ = kFirstNumber;
};

// [-]
}  // namespace openreg::orccl
