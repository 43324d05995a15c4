// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.derived] A thread-local flag tells PyTorch's calls of an `.out` kernel from the user's.
/// Before PyTorch's functional and in-place forms call the `.out` form, they
/// allocate or check the outputs. A user who passes `out=` did neither. While
/// an object lives, the next `.out` form that its thread calls is of the first
/// kind.
class DerivedCall {
 public:
  DerivedCall();
  DerivedCall(const DerivedCall&) = delete;
  ~DerivedCall();

  /// Whether such a call was announced; ends the announcement.
  static bool take();

 private:
  bool before_;
};

// [-]
}  // namespace openreg
