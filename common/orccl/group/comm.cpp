// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/group/comm.h"

#include "torch_openreg/common/background.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace openreg::orccl {

// [common.orccl.comm.abort] The host cannot write device memory, so a kernel on the control stream raises the numbers.
void Comm::abort(const char* reason) noexcept {
  ending->set("", reason ? reason : "");
  // A device that refuses the kernel has failed, and has thereby ended its
  // waits.
  static_cast<void>(launch(boxes.control, "abort", [self = shared_from_this()] {
    self->boxes.raiseNumbers();
  }));
}

void Comm::fail(std::string disagreement) {
  ending->set(std::move(disagreement), "");
  boxes.raiseNumbers();
}

// [common.orccl.comm.leave] Freeing waits for all work of the process, so a detached thread does it.
void Comm::leave(std::shared_ptr<Comm> comm) noexcept {
  if (orIsForked()) return;
  comm->abort(nullptr);
  comm->peers.leave();
  const auto free = [comm = std::move(comm)] {
    // The others are kernels that have not ended.
    for (int ms = 1; comm.use_count() > 1; ms = std::min(2 * ms, 1000)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    }
    comm->peers.unmap();
    comm->boxes.release();
  };
  try {
    runInBackground(std::move(free));
  } catch (const std::exception&) {
    // Without a thread, the memory stays allocated until the process ends.
  }
}

// [-]
}  // namespace openreg::orccl
