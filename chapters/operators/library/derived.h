// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.derived] A thread-local flag tells PyTorch's calls of an `.out` kernel from the user's.
/// PyTorch's functional and in-place forms allocate or check the outputs before
/// they call the `.out` form; a user's call comes without that. While an object
/// of this class exists, the next `.out` call on its thread counts as
/// PyTorch's.
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
