// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/collectives.h"

#include "torch_openreg/chapters/distributed/communicator/reduce.h"
#include "torch_openreg/common/check.h"

#include <c10/util/Exception.h>

namespace openreg {

// [distributed.collectives.checks] Arguments are refused before anything is enqueued.
void Collectives::checkRank(const char* role, int rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size(), "The ", role, " is rank ", rank,
                    "; the group has the ranks 0 to ", size() - 1, ".");
}

void Collectives::checkPeer(bool is_send, int peer) const {
  checkRank(is_send ? "receiver" : "sender", peer);
}

void Collectives::checkParts(const char* call, const char* what,
                             size_t count) const {
  TORCH_CHECK_VALUE(count == static_cast<size_t>(size()), call, " has ", count,
                    " ", what, " for ", size(), " ranks.");
}

void Collectives::checkReduction(NumberType type, Reduction reduction) {
  TORCH_CHECK_VALUE(isDefined(reduction, type), "Numbers of type ",
                    nameOf(type), " have no ", nameOf(reduction), ".");
}

void Collectives::checkNotCaptured(orStream_t stream) {
  orStreamCaptureStatus status;
  check(orStreamIsCapturing(stream, &status));
  TORCH_CHECK_NOT_IMPLEMENTED(
      status == orStreamCaptureStatusNone,
      "A graph cannot hold communication with other processes; call it before "
      "or after the capture.");
}

// [-]
}  // namespace openreg
