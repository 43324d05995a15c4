// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

namespace openreg {

// [operators.custom] An operator library has a namespace, and a schema for each operator.
/// PyTorch relies on schemas, so an operator that returns its argument's memory
/// must declare it.
TORCH_LIBRARY(openreg, m) {
  m.set_python_module("torch_openreg._custom");
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def("custom_abs(Tensor input) -> Tensor", tags);
  m.def("custom_autograd_fn_returns_self(Tensor(a) input) -> Tensor(a)", tags);
  m.def("custom_autograd_fn_aliasing(Tensor(a) input) -> Tensor(a)", tags);
  m.def("scale_mask_softmax(Tensor input, Tensor mask, float scale) -> Tensor",
        tags);
  m.def(
      "scale_mask_softmax_backward(Tensor grad, Tensor output, float scale) "
      "-> Tensor",
      tags);
}

// [-]
}  // namespace openreg
