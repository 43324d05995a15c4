// SPDX-License-Identifier: BSD-3-Clause
// [first.pch] What most of our files include is read once.
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>
// [-]
