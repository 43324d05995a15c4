// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/device.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <utility>

namespace openreg::hardware {

// [common.races.plan.add] A stream runs its commands in the order in which they were enqueued, so its plan is a queue.
void Races::plan(Stream& stream, const Clock& clock, const char* name,
                 std::shared_ptr<const Launch> launch) {
  const bool is_default =
      stream.name == reinterpret_cast<int64_t>(defaultOf(*stream.device));
  stream.plan.push_back({std::move(launch),
                         {},
                         name,
                         stream.number,
                         clock.of(stream.number),
                         clock,
                         ++planned_,
                         stream.device->index,
                         is_default ? 0 : stream.name});
}

const Planned& Races::nextOf(orStream_t handle) {
  std::lock_guard lock(mutex_);
  // A command of another time has no plan: it runs first.
  static const Planned& unknown = *new Planned;
  const auto& plan = stream(handle).plan;
  return plan.empty() ? unknown : plan.front();
}

Planned Races::takeNext(orStream_t handle) {
  std::lock_guard lock(mutex_);
  auto& plan = stream(handle).plan;
  if (plan.empty()) return {};
  Planned next = std::move(plan.front());
  plan.pop_front();
  return next;
}

// [common.races.plan.host] An access or a query of the host's is a step, too, which comes before all that the host enqueues later.
Planned Races::planHost(std::shared_ptr<const Launch> launch,
                        const Clock& asks) {
  std::lock_guard lock(mutex_);
  const uint64_t tick = host_.tick(0);
  const char* name = launch->name.c_str();
  return {launch, asks, name, 0, tick, host_, ++planned_, -1, 0};
}

bool Races::hostKnows(const Clock& asks) {
  std::lock_guard lock(mutex_);
  Clock both = host_;
  both.join(asks);
  return both.ticks() == host_.ticks();
}

Clock Races::clockOf(orStream_t handle) {
  std::lock_guard lock(mutex_);
  return stream(handle).clock;
}

uint64_t Races::planned() {
  std::lock_guard lock(mutex_);
  return planned_;
}

// [-]
}  // namespace openreg::hardware
