// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.backward-threads] The process must not exit while autograd's device threads hold Python objects.
/// Waits until PyTorch's backward threads of our devices have released their
/// last pass. Call it without Python's GIL.
void waitForBackwardThreads();

// [-]
}  // namespace openreg
