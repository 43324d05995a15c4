// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace openreg {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [operators.custom.functions] In the forward pass these functions touch no data; in the backward pass they halve the gradient.
template <bool as_view>
class HalvesGradient
    : public torch::autograd::Function<HalvesGradient<as_view>> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& input) {
    return as_view ? input.view_as(input) : input;
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {grads[0] / 2};
  }
};

// [operators.custom.functions.register] Composed of a view, they are registered for every backend, and autograd sees their parts.
TORCH_LIBRARY_IMPL(openreg, CompositeImplicitAutograd, m) {
  m.impl("custom_autograd_fn_returns_self", [](const at::Tensor& input) {
    return HalvesGradient<false>::apply(input);
  });
  m.impl("custom_autograd_fn_aliasing", [](const at::Tensor& input) {
    return HalvesGradient<true>::apply(input);
  });
}

// [-]
}  // namespace
}  // namespace openreg
