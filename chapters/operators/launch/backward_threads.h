// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.backward-threads] Before a program ends, its backward passes must have ended too.
/// Waits until the threads of PyTorch that go backward on our devices hold
/// nothing of their last pass. Call it without Python's lock.
void settleBackwardThreads();

// [-]
}  // namespace openreg
