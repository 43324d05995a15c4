// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/examples/opencl/kernels/elementwise.h"

#include <ATen/Dispatch.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/add.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [opencl.formulas] An elementwise operator is its name, the dtype of its result, and a formula.
enum class Result {
  common,    // the dtype to which the operands are promoted
  floating,  // the same, but whole numbers become floats
  real,      // the same, and whole numbers are refused, by the CPU
  truth,     // Bool, and numbers are operands
};

struct Formula {
  const char* name;
  Result result;
  const char* text;
};

// [opencl.formulas.table] A formula uses a, b and c for the operands, and s and t for the numbers.
constexpr Formula kFormulas[] = {
    {"add.out", Result::common, "a + s * b"},
    {"sub.out", Result::common, "a - s * b"},
    {"mul.out", Result::common, "a * b"},
    {"div.out", Result::floating, "a / b"},
    {"maximum.out", Result::common, "a > b || a != a ? a : b"},
    {"minimum.out", Result::common, "a < b || a != a ? a : b"},
    {"addcmul.out", Result::common, "a + s * b * c"},
    {"addcdiv.out", Result::common, "a + s * b / c"},
    {"lerp.Scalar_out", Result::real,
     "s < (C)0.5 && s > -(C)0.5 ? a + s * (b - a) : b - (b - a) * (1 - s)"},
    {"lerp.Tensor_out", Result::real,
     "c < (C)0.5 && c > -(C)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c)"},
    {"clamp_min.out", Result::common, "a < s ? s : a"},
    {"threshold.out", Result::common, "a <= s ? t : a"},
    {"pow.Tensor_Scalar_out", Result::real, "pow(a, s)"},
    {"sgn.out", Result::common, "(a > 0) - (a < 0)"},
    {"neg.out", Result::common, "-a"},
    {"abs.out", Result::common, "a > 0 ? a : 0 - a"},
    {"exp.out", Result::floating, "exp(a)"},
    {"log.out", Result::floating, "log(a)"},
    {"sqrt.out", Result::floating, "sqrt(a)"},
    {"rsqrt.out", Result::floating, "1 / sqrt(a)"},
    {"reciprocal.out", Result::floating, "1 / a"},
    {"sin.out", Result::floating, "sin(a)"},
    {"cos.out", Result::floating, "cos(a)"},
    {"erf.out", Result::floating, "erf(a)"},
    {"tanh.out", Result::floating, "tanh(a)"},
    {"sigmoid.out", Result::floating, "1 / (1 + exp(-a))"},
    {"silu.out", Result::real, "a / (1 + exp(-a))"},
};

// [opencl.formulas.more] Comparisons, and the gradients of activations, are formulas too.
constexpr Formula kMoreFormulas[] = {
    {"eq.Tensor_out", Result::truth, "a == b"},
    {"eq.Scalar_out", Result::truth, "a == b"},
    {"ne.Tensor_out", Result::truth, "a != b"},
    {"ne.Scalar_out", Result::truth, "a != b"},
    {"lt.Tensor_out", Result::truth, "a < b"},
    {"lt.Scalar_out", Result::truth, "a < b"},
    {"le.Tensor_out", Result::truth, "a <= b"},
    {"le.Scalar_out", Result::truth, "a <= b"},
    {"gt.Tensor_out", Result::truth, "a > b"},
    {"gt.Scalar_out", Result::truth, "a > b"},
    {"ge.Tensor_out", Result::truth, "a >= b"},
    {"ge.Scalar_out", Result::truth, "a >= b"},
    {"gelu.out", Result::real,
     "a * (C)0.5 * (1 + erf(a * (C)0.70710678118654752440))"},
    {"gelu_backward.grad_input", Result::real,
     "a * ((C)0.5 * (1 + erf(b * (C)0.70710678118654752440)) + "
     "b * exp(-b * b / 2) * (C)0.39894228040143267794)"},
    {"silu_backward.grad_input", Result::real,
     "a / (1 + exp(-b)) * (1 + b * (1 - 1 / (1 + exp(-b))))"},
    {"tanh_backward.grad_input", Result::real, "a * (1 - b * b)"},
    {"sigmoid_backward.grad_input", Result::real, "a * (1 - b) * b"},
    {"threshold_backward.grad_input", Result::common, "b <= s ? 0 : a"},
};

// [opencl.formulas.kernel] One boxed kernel serves all: its arguments are tensors, then numbers, and last the output.
class FormulaKernel final : public c10::OperatorKernel {
 public:
  explicit FormulaKernel(const Formula& formula) : formula_(formula) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  torch::jit::Stack* stack) {
    const size_t count = op.schema().arguments().size();
    const auto arguments = torch::jit::last(*stack, count).vec();
    const at::Tensor out = arguments.back().toTensor();
    std::vector<at::Tensor> inputs;
    c10::Scalar numbers[2] = {0, 0};
    size_t used = 0;
    for (size_t i = 0; i + 1 < count; ++i) {
      if (arguments[i].isTensor()) {
        inputs.push_back(arguments[i].toTensor());
      } else if (arguments[i].isString()) {
        if (arguments[i].toStringRef() != "none") return fallback(op, stack);
      } else if (formula_.result == Result::truth) {
        inputs.push_back(c10::scalar_to_tensor(arguments[i].toScalar()));
        inputs.back().unsafeGetTensorImpl()->set_wrapped_number(true);
      } else {
        numbers[used++] = arguments[i].toScalar();
      }
    }
    if (!compute(out, inputs, numbers)) return fallback(op, stack);
    torch::jit::drop(*stack, count);
    torch::jit::push(*stack, out);
  }

  // [opencl.formulas.iterator] The iterator gets the same settings as in the CPU's kernels.
 private:
  bool compute(const at::Tensor& out, const std::vector<at::Tensor>& inputs,
               const c10::Scalar (&numbers)[2]) const {
    if (numbers[0].isComplex() || numbers[1].isComplex() || !knowsAll(inputs) ||
        !knowsAll({out}))
      return false;
    at::TensorIteratorConfig config;
    config.add_output(out).set_check_mem_overlap(true).allow_cpu_scalars(true);
    config.promote_inputs_to_common_dtype(true);
    if (formula_.result != Result::truth) {
      config.cast_common_dtype_to_outputs(true)
          .enforce_safe_casting_to_output(true)
          .promote_integer_inputs_to_float(formula_.result == Result::floating);
    }
    for (const at::Tensor& input : inputs) config.add_const_input(input);
    const at::TensorIterator iterator = config.build();
    const at::ScalarType dtype = iterator.common_dtype();
    if (formula_.result == Result::real && !at::isFloatingType(dtype))
      return false;
    // A whole number of s would be another bound than the CPU's.
    const bool fraction =
        numbers[0].isFloatingPoint() || numbers[1].isFloatingPoint();
    if (fraction && at::isIntegralType(dtype, /*includeBool=*/true))
      return false;
    if (!canLaunch(iterator, dtype)) return false;
    launchFormula(iterator, dtype, formula_.text, numbers[0], numbers[1]);
    return true;
  }

  Formula formula_;
};

// [opencl.formulas.add] Addition is also registered by hand, because our benchmark compares its host time.
using Add = Structured<at::meta::structured_add_Tensor>;

bool addTensors(Add& add, const at::Tensor& self, const at::Tensor& other,
                const at::Scalar& alpha) {
  if (alpha.isComplex() || !knowsAll({self, other})) return false;
  add.meta(self, other, alpha);
  if (!canLaunch(add, add.common_dtype())) return false;
  launchFormula(add, add.common_dtype(), "a + s * b", alpha);
  return true;
}

at::Tensor add(const at::Tensor& self, const at::Tensor& other,
               const at::Scalar& alpha) {
  Add add;
  if (addTensors(add, self, other, alpha)) return add.release();
  return at::native::call_fallback_fn<&fallback, at::_ops::add_Tensor>::call(
      self, other, alpha);
}

// [opencl.formulas.where] Two operators that choose elements are not structured, so the iterator makes their outputs.
at::Tensor where(const at::Tensor& condition, const at::Tensor& self,
                 const at::Tensor& other) {
  if (!knowsAll({condition, self, other}) ||
      condition.scalar_type() != at::kBool) {
    return at::native::call_fallback_fn<&fallback, at::_ops::where_self>::call(
        condition, self, other);
  }
  const at::ScalarType dtype = at::result_type(self, other);
  const at::Tensor a = self.to(dtype), b = other.to(dtype);
  at::Tensor out;
  const at::TensorIterator iterator =
      at::TensorIteratorConfig()
          .check_all_same_dtype(false)
          .allow_cpu_scalars(true)
          .declare_static_dtype(dtype)
          .declare_static_device(condition.is_cpu() ? self.device()
                                                    : condition.device())
          .add_output(out)
          .add_const_input(condition)
          .add_const_input(a)
          .add_const_input(b)
          .build();
  launchFormula(iterator, dtype, "a != 0 ? b : c");
  return iterator.output();
}

// [opencl.formulas.masked-fill] A masked fill also reads the elements that it keeps.
at::Tensor& maskedFill(at::Tensor& self, const at::Tensor& mask,
                       const at::Scalar& value) {
  if (!knowsAll({self, mask}) || value.isComplex() ||
      mask.scalar_type() != at::kBool) {
    return at::native::call_fallback_fn<
        &fallback, at::_ops::masked_fill__Scalar>::call(self, mask, value);
  }
  AT_DISPATCH_ALL_TYPES_AND3(
      at::kBool, at::kHalf, at::kBFloat16, self.scalar_type(), "masked_fill_",
      [&] { (void)value.to<scalar_t>(); });  // Refuses what does not fit.
  const at::TensorIterator iterator = at::TensorIteratorConfig()
                                          .check_all_same_dtype(false)
                                          .resize_outputs(false)
                                          .add_output(self)
                                          .add_const_input(mask)
                                          .add_const_input(self)
                                          .build();
  launchFormula(iterator, self.scalar_type(), "a != 0 ? s : b", value);
  return self;
}

/// If the value is on the device, the host reads it first.
at::Tensor& maskedFillTensor(at::Tensor& self, const at::Tensor& mask,
                             const at::Tensor& value) {
  TORCH_CHECK(
      value.dim() == 0,
      "masked_fill_ only supports a 0-dimensional value tensor, but got "
      "tensor with ",
      value.dim(), " dimension(s).");
  return maskedFill(self, mask, value.item());
}

// [opencl.formulas.register] PyTorch derives the functional and in-place forms of each operator from its `.out` form.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  const auto implement = [&m](const Formula& formula) {
    m.impl(formula.name, torch::CppFunction::makeFromBoxedFunctor(
                             std::make_unique<FormulaKernel>(formula)));
  };
  for (const Formula& formula : kFormulas) implement(formula);
  for (const Formula& formula : kMoreFormulas) implement(formula);
  m.impl("add.Tensor", &add);
  m.impl("where.self", &where);
  m.impl("masked_fill_.Scalar", &maskedFill);
  m.impl("masked_fill_.Tensor", &maskedFillTensor);
}

// [-]
}  // namespace
}  // namespace openreg
