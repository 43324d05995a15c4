// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/watchdog.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

namespace openreg {

// [distributed.outcome.kernels] One kernel at the end of the operation looks, and one behind each wait refuses.
void Outcome::record(std::shared_ptr<Outcome> outcome, orStream_t stream,
                     std::shared_ptr<const std::atomic<bool>> aborted) {
  check(launch(stream, "end",
               [outcome = std::move(outcome), aborted = std::move(aborted)] {
                 outcome->is_right_ = !*aborted;
               }));
}

void Outcome::refuseIfWrong(std::shared_ptr<Outcome> outcome,
                            orStream_t stream) {
  if (outcome->is_right_) return;
  check(launch(stream, "wait", [outcome = std::move(outcome)] {
    if (outcome->is_right_) return;
    const std::lock_guard lock(outcome->ending_->mutex);
    const std::string& reason = outcome->ending_->reason;
    throw Refusal(outcome->name_ + " has no result, because its group failed" +
                  (reason.empty() ? "." : ". " + reason));
  }));
}

// [-]
}  // namespace openreg
