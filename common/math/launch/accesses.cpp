// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/accesses.h"

#include <ATen/core/TensorBase.h>

namespace openreg {

// [common.accesses.announce] A tensor on the host is captured by value, so no kernel touches it.
void announceToDriver(const at::TensorBase& tensor, Access access) {
  if (!tensor.defined() || tensor.is_cpu()) return;
  const orAccess announced{tensor.const_data_ptr(),
                           static_cast<size_t>(tensor.element_size()),
                           static_cast<int>(tensor.dim()),
                           tensor.sizes().data(),
                           tensor.strides().data(),
                           access == Access::write};
  orAnnounceAccess(&announced);
}

void announceBlock(const void* data, Access access) {
  if (!accessesAreWanted() || !data) return;
  const orAccess announced{data,    0,       0,
                           nullptr, nullptr, access == Access::write};
  orAnnounceAccess(&announced);
}

// [-]
}  // namespace openreg
