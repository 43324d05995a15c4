// SPDX-License-Identifier: BSD-3-Clause
// Loaded before all others, makes a driver that does not share memory between
// processes.
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

const char* orGetErrorDetail() noexcept {
  return "This driver does not share memory between processes.";
}

orError_t orIpcGetMemHandle(orIpcMemHandle_t*, void*) noexcept {
  return orErrorNotSupported;
}

orError_t orIpcOpenMemHandle(void**, orIpcMemHandle_t) noexcept {
  return orErrorNotSupported;
}
