// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/group/ending.h"
#include "torch_openreg/common/orccl/group/mailbox.h"
#include "torch_openreg/common/orccl/group/peers.h"

#include <memory>
#include <string>

namespace openreg::orccl {

// [common.orccl.comm] Kernels keep this part of a communicator alive, so its handle may be destroyed before they have run.
/// One rank's part of a group: memory, peers, and whether it was aborted.
class Comm : public std::enable_shared_from_this<Comm> {
 public:
  /// Allocates this rank's mailbox.
  Comm(int rank, int size)
      : rank(rank), size(size), boxes(rank, size), peers(boxes) {}

  const int rank;   ///< of this process
  const int size;   ///< of the group
  Mailboxes boxes;  ///< of all ranks
  Peers peers;      ///< all ranks

  const std::shared_ptr<Ending> ending =  ///< outlives this
      std::make_shared<Ending>();

  /// For kernels, which do nothing then.
  bool isAborted() const noexcept { return ending->isAborted(); }
  /// Ends all waits of this rank. Any thread.
  void abort(const char* reason) noexcept;
  /// The same from a kernel, because the ranks disagree.
  void fail(std::string disagreement);
  /// Aborts, says goodbye to the peers, and frees everything once no kernel and
  /// no peer uses it, without waiting for that.
  static void leave(std::shared_ptr<Comm> comm) noexcept;
};

// [-]
}  // namespace openreg::orccl
