// SPDX-License-Identifier: BSD-3-Clause
// [common.python-pch] Headers that most of the bindings include, parsed once for all of them.
#include <ATen/core/Tensor.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

// [-]
