// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <unistd.h>

int main() {
  const c10::Stream other = openreg::poolStream(0, 0);
  float read = 0;
  {
    c10::DataPtr x = openreg::allocator().allocate(sizeof(float));
    float* place = openreg::onDevice(static_cast<float*>(x.get()));
    openreg::launch(nullptr, "write x", [=] { *place = 1; });
    orDeviceSynchronize();
#ifndef WRONG
    openreg::allocator().recordStream(x, other);
#endif
    openreg::launch(openreg::nativeStream(other), "read x", [&read, place] {
      usleep(100'000);
      read = *place;
    });
  }
  c10::DataPtr y = openreg::allocator().allocate(sizeof(float));
  float* place = openreg::onDevice(static_cast<float*>(y.get()));
  openreg::launch(nullptr, "write y", [=] { *place = 2; });
  orDeviceSynchronize();
  // 2 is the value of y; any other failure would prove nothing.
  const float wrong = 2;
  return read == 1 ? 0 : read == wrong ? 1 : 99;
}
