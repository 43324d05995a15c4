// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/collectives/pipeline.h"
#include "torch_openreg/common/orccl/collectives/point_to_point.h"

#include <memory>

// [common.orccl.api.handle] The state of a handle belongs to the calling thread; kernels use the part that is shared with them.
struct orcclComm {
  const std::shared_ptr<openreg::orccl::Comm> shared;         ///< with kernels
  openreg::orccl::Pipeline pipeline{shared, {shared->size}};  ///< of the group
  openreg::orccl::PointToPoint point_to_point{shared};  ///< of sends, receives
};

namespace openreg::orccl {
/// A null handle is refused; any other is believed.
inline orcclComm& find(orcclComm_t comm) {
  require(comm, orcclInvalidArgument, "The communicator is null.");
  return *comm;
}

// [-]
}  // namespace openreg::orccl
