// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>

namespace openreg {
namespace {

// [operators.custom.abs.loop] All threads of the device share the elements.
template <class T>
void absInto(at::Tensor& out, const at::Tensor& input) {
  const at::Tensor packed = input.contiguous();
  const T* from = packed.const_data_ptr<T>();
  T* to = out.data_ptr<T>();
  at::parallel_for(0, out.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to[i] = std::abs(static_cast<at::opmath_type<T>>(from[i]));
    }
  });
}

// [operators.custom.abs] The host checks, allocates and enqueues.
at::Tensor customAbsMeta(const at::Tensor& input) {
  TORCH_CHECK_TYPE(input.is_floating_point(), "custom_abs does not take ",
                   input.scalar_type(), "; it takes floating types, and ",
                   "torch.abs takes all.");
  return at::empty_symint(input.sym_sizes(), input.options());
}

at::Tensor customAbs(const at::Tensor& input) {
  at::Tensor out = customAbsMeta(input);
  launchRehearsed(
      "custom_abs",
      [](at::Tensor out, const at::Tensor& input) {
        AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16,
                                        input.scalar_type(), "custom_abs",
                                        [&] { absInto<scalar_t>(out, input); });
      },
      out, input);
  return out;
}

// [operators.custom.abs.autograd] Autograd saves the input and calls the operator again below its own key.
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class CustomAbs : public torch::autograd::Function<CustomAbs> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("openreg::custom_abs", "")
                               .typed<at::Tensor(const at::Tensor&)>();
    at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({input});
    return op.call(input);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    return {grads[0].mul(context->get_saved_variables()[0].sgn())};
  }
};

at::Tensor customAbsAutograd(const at::Tensor& input) {
  return CustomAbs::apply(input);
}

// [operators.custom.abs.register] The operator has kernels at three keys: with data, without data, and with a gradient.
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("custom_abs", &customAbs);
}

TORCH_LIBRARY_IMPL(openreg, Meta, m) { m.impl("custom_abs", &customAbsMeta); }

TORCH_LIBRARY_IMPL(openreg, Autograd, m) {
  m.impl("custom_abs", &customAbsAutograd);
}

// [-]
}  // namespace
}  // namespace openreg
