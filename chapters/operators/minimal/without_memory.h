// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.without-memory] PyTorch may be asked what it would allocate, without any memory being taken.
/// While it lives, `at::empty` on the calling thread makes tensors of our
/// devices that have sizes and strides, and no memory.
class WithoutMemory {
 public:
  WithoutMemory() : before_(active_) { active_ = true; }
  WithoutMemory(const WithoutMemory&) = delete;
  ~WithoutMemory() { active_ = before_; }

  /// On this thread.
  static bool isActive() { return active_; }

 private:
  static inline thread_local bool active_ = false;
  bool before_;
};

// [-]
}  // namespace openreg
