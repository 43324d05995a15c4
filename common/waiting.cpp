// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/waiting.h"

namespace openreg {

// [common.waiting.socket] Without Python there is no lock to release.
static constinit Gil gil{[]() -> void* { return nullptr; }, [](void*) {}};

void setGil(Gil functions) { gil = functions; }

WithoutGil::WithoutGil() : thread_(gil.release()) {}

WithoutGil::~WithoutGil() {
  if (thread_) gil.take(thread_);
}

// [-]
}  // namespace openreg
