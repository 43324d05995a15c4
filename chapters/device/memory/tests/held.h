// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <unistd.h>

#include <atomic>
#include <memory>

/// Holds a stream, from its construction to its end or `open()`.
class Gate {
 public:
  explicit Gate(c10::Stream stream) : stream_(stream) {
    openreg::launch(openreg::nativeStream(stream), "gate", [open = open_] {
      while (!*open) usleep(10);
    });
  }
  ~Gate() { open(); }
  void open() {
    *open_ = true;
    openreg::check(orStreamSynchronize(openreg::nativeStream(stream_)));
  }

 private:
  c10::Stream stream_;
  std::shared_ptr<std::atomic<bool>> open_ =
      std::make_shared<std::atomic<bool>>(false);
};

/// How many bytes of the current device are free.
inline size_t freeBytes() {
  size_t free, total;
  openreg::check(orMemGetInfo(&free, &total));
  return free;
}
