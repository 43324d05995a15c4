// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.derived] A thread-local flag tells PyTorch's calls of an `.out` kernel from the user's.
/// PyTorch's functional and in-place forms allocate or check the outputs before
/// they call the `.out` form. A user who calls it has done neither. As long as
/// an object lives, the next `.out` form that its thread calls counts as called
/// by PyTorch.
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
