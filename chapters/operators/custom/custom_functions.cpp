// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace openreg {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [operators.custom.functions] In the forward pass these functions touch no data; in the backward pass they halve the gradient.
class ReturnsSelf : public torch::autograd::Function<ReturnsSelf> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& input) {
    return input;
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0] / 2};
  }
};

class Aliasing : public torch::autograd::Function<Aliasing> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& input) {
    return input.view_as(input);
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0] / 2};
  }
};

// [operators.custom.functions.register] Composed of a view, they are registered for every backend, and autograd sees their parts.
TORCH_LIBRARY_IMPL(openreg, CompositeImplicitAutograd, m) {
  m.impl("custom_autograd_fn_returns_self",
         [](const at::Tensor& input) { return ReturnsSelf::apply(input); });
  m.impl("custom_autograd_fn_aliasing",
         [](const at::Tensor& input) { return Aliasing::apply(input); });
}

// [-]
}  // namespace
}  // namespace openreg
