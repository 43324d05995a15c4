// SPDX-License-Identifier: BSD-3-Clause
// Loaded before all others, makes a machine with 20 devices, of which only two
// can be used.
#include "torch_openreg/common/openreg/interface/openreg.h"

static thread_local int current = 0;

orError_t orGetDeviceCount(int* count) noexcept {
  *count = 20;
  return orSuccess;
}

orError_t orGetDevice(int* device) noexcept {
  *device = current;
  return orSuccess;
}

orError_t orSetDevice(int device) noexcept {
  if (device < 0 || device >= 20) return orErrorInvalidDevice;
  current = device;
  return orSuccess;
}
