// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/kernels/kernels.h"
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/plan/primitives.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/div.h>
#include <ATen/ops/gcd.h>
#include <ATen/ops/igamma.h>
#include <ATen/ops/igammac.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <unordered_map>

namespace openreg {
namespace {

// [common.corrected.converted] Most corrections convert the tensors, call the kernel, and round or move once what it writes.
template <at::Tensor (*convert)(const at::Tensor&)>
void onConverted(const c10::OperatorHandle& op, Stack& stack) {
  const Stack arguments = stack;
  for (c10::IValue& argument : stack) argument = mapTensors(argument, convert);
  const Stack converted = stack;
  callCpuKernel(op, stack);
  const auto written = [&](const Stack& all) {
    std::vector<at::Tensor> tensors;
    forEachWritten(op, all, [&](const at::Tensor& tensor, size_t) {
      tensors.push_back(tensor);
    });
    return tensors;
  };
  const auto to = written(arguments), from = written(converted);
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

/// For a kernel that is wrong in narrow dtypes.
template <at::ScalarType wide>
at::Tensor widened(const at::Tensor& tensor) {
  const bool narrow = at::isFloatingType(tensor.scalar_type()) &&
                      tensor.itemsize() < c10::elementSize(wide);
  return narrow ? tensor.to(wide) : tensor;
}

/// For a kernel that reads or writes gaps between the elements.
at::Tensor withoutGaps(const at::Tensor& tensor) { return tensor.contiguous(); }

// [common.corrected.grid] PyTorch documents that a coordinate that is not a number counts as -1, and samples garbage there.
/// A coordinate that is infinite becomes one that is far outside.
void sampleGrid(const c10::OperatorHandle& op, Stack& stack) {
  c10::IValue& grid = argumentNamed("grid", op, stack);
  const at::Tensor places = grid.toTensor();
  const bool narrow = at::isReducedFloatingType(places.scalar_type());
  grid =
      at::nan_to_num(narrow ? places.to(at::kFloat) : places, -1., 1e30, -1e30);
  onConverted<widened<at::kFloat>>(op, stack);
}

// [common.corrected.operands] The CPU converts two operands to their common dtype before it computes, so a correction does the same.
/// Converts the first two arguments, and returns their dtype.
at::ScalarType convertOperands(Stack& stack) {
  const auto type = at::result_type(stack[0].toTensor(), stack[1].toTensor());
  for (int i : {0, 1}) stack[i] = stack[i].toTensor().to(type);
  return type;
}

// [common.corrected.integers] The smallest integer has no absolute value, so a gcd may come out negative, and dividing by minus one ends the process.
void gcd(const c10::OperatorHandle&, Stack& stack) {
  // In the operands' dtype, because the output may be narrower or unsigned.
  stack[2].toTensor().copy_(
      at::gcd(stack[0].toTensor(), stack[1].toTensor()).abs_());
}

/// In C++, integers of 8 and 16 bits are multiplied as integers of 32.
void lcm(const c10::OperatorHandle&, Stack& stack) {
  const at::Tensor out = stack[2].toTensor();
  const auto common = convertOperands(stack);
  const auto type = c10::elementSize(common) < 4 ? at::kInt : common;
  const at::Tensor self = stack[0].toTensor().to(type);
  const at::Tensor other = stack[1].toTensor().to(type);
  const at::Tensor divisor = at::gcd(self, other).abs_();
  const at::Tensor quotient =
      at::div(self, divisor.masked_fill(divisor == 0, 1), "trunc");
  out.copy_(quotient.mul(other).abs_().to(common));
}

void divide(const c10::OperatorHandle& op, Stack& stack) {
  const auto type = at::result_type(stack[0].toTensor(), stack[1].toTensor());
  // In an unsigned dtype, 255 would equal -1.
  if (!stack[2].isString() || stack[2].toStringRef() != "trunc" ||
      !at::isIntegralType(type, /*includeBool=*/false) ||
      !at::isSignedType(type))
    return callCpuKernel(op, stack);
  convertOperands(stack);
  const at::Tensor other = stack[1].toTensor(), negates = other == -1;
  const at::Tensor quotient =
      at::div(stack[0].toTensor(), other.masked_fill(negates, 1), "trunc");
  stack.back().toTensor().copy_(at::where(negates, quotient.neg(), quotient));
}

// [common.corrected.remainder] The operands are rounded before they are widened.
void remainder(const c10::OperatorHandle& op, Stack& stack) {
  convertOperands(stack);
  onConverted<widened<at::kDouble>>(op, stack);
}

// [common.corrected.logit] The gradient of `logit` is one formula for every element, so its sign at -0.0 does not depend on the place in the tensor.
void logitBackward(const c10::OperatorHandle&, Stack& stack) {
  const at::Tensor out = stack[3].toTensor();
  const auto type = at::toOpMathType(out.scalar_type());
  const at::Tensor x = stack[1].toTensor().to(type);
  const at::Tensor slope = stack[0].toTensor().to(type) / (x * (1 - x));
  const double eps = stack[2].isNone() ? -1 : stack[2].toDouble();
  const double low = std::max(eps, 0.), high = 1 - low;
  const double outside = eps < 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  out.copy_(slope.masked_fill((x < low).logical_or(x > high), outside));
}

// [common.corrected.gamma] For a small shape, the upper tail is a difference of numbers near one, which a series gives without cancellation.
/// Γ(a, x) / Γ(a) for 0 < a < 1e-4 and 0 < x <= 1.1.
at::Tensor upperTail(const at::Tensor& a, const at::Tensor& x) {
  constexpr double kPi2 = std::numbers::pi * std::numbers::pi;
  constexpr double kZeta3 = 1.2020569031595942;
  const at::Tensor log_gamma =  // of 1 + a, where 1 + a would lose digits
      a * (a * (a * (a * (kPi2 * kPi2 / 360) - kZeta3 / 3) + kPi2 / 12) -
           std::numbers::egamma);
  const at::Tensor exponent = a * x.log() - log_gamma;
  at::Tensor term = -x, sum = term / (a + 1);
  for (int n = 2; n < 20; ++n) {
    term = term * x / -n;
    sum = sum + term / (a + n);
  }
  return -exponent.expm1() - exponent.exp() * a * sum;
}

at::Tensor upperGamma(const at::Tensor& a, const at::Tensor& x) {
  const at::Tensor small =
      (a > 0).logical_and(a < 1e-4).logical_and(x > 0).logical_and(x <= 1.1);
  const at::Tensor usual = at::igammac(a, x);
  return small.any().item<bool>() ? at::where(small, upperTail(a, x), usual)
                                  : usual;
}

template <bool upper>
void incompleteGamma(const c10::OperatorHandle&, Stack& stack) {
  const at::Tensor a = stack[0].toTensor().to(at::kDouble);
  const at::Tensor x = stack[1].toTensor().to(at::kDouble);
  stack[2].toTensor().copy_(upper ? upperGamma(a, x) : at::igamma(a, x));
}

// [common.corrected.bag] The CPU scales the gradient of a row by the count of another row, so the rows are scaled here.
void embeddingBagBackward(const c10::OperatorHandle& op, Stack& stack) {
  constexpr int64_t kMax = 2;
  c10::IValue& by_frequency = argumentNamed("scale_grad_by_freq", op, stack);
  const bool scales =
      by_frequency.toBool() && argumentNamed("mode", op, stack).toInt() != kMax;
  // An index behind the last bag has the number of a bag that does not exist.
  const at::Tensor bags = argumentNamed("offset2bag", op, stack).toTensor();
  const auto in_bags =
      (bags != stack[0].toTensor().size(0)).sum().item<int64_t>();
  for (const char* name : {"indices", "offset2bag", "per_sample_weights"}) {
    c10::IValue& each = argumentNamed(name, op, stack);
    if (each.isTensor() && each.toTensor().defined())
      each = each.toTensor().narrow(0, 0, in_bags);
  }
  const at::Tensor indices = argumentNamed("indices", op, stack).toTensor();
  const int64_t rows = argumentNamed("num_weights", op, stack).toInt();
  if (scales) by_frequency = false;
  callCpuKernel(op, stack);
  if (!scales) return;
  at::Tensor gradient = stack.back().toTensor();
  const at::Tensor counts = at::bincount(indices, {}, rows).clamp_min(1);
  gradient.div_(counts.unsqueeze(1));
}

// [common.corrected.addmv] If the product is empty, the CPU's kernel resizes its output to the size of the summand.
void addmv(const c10::OperatorHandle& op, Stack& stack) {
  const at::Tensor self = stack[0].toTensor(), out = stack.back().toTensor();
  if (self.sizes() != out.sizes()) stack[0] = self.expand(out.sizes());
  callCpuKernel(op, stack);
}

// [common.corrected.table] The table names overloads, because other overloads may have kernels that are right.
using Correction = void (*)(const c10::OperatorHandle&, Stack&);

constexpr std::pair<const char*, Correction> kCorrections[] = {
    {"_fused_sgd_", &onConverted<widened<at::kFloat>>},
    {"_fused_sgd_.tensor_lr", &onConverted<widened<at::kFloat>>},
    {"special_i0e.out", &onConverted<widened<at::kFloat>>},
    {"grid_sampler_2d", &sampleGrid},
    {"grid_sampler_2d_backward", &sampleGrid},
    {"grid_sampler_3d", &sampleGrid},
    {"grid_sampler_3d_backward", &sampleGrid},
    {"linalg_matrix_exp", &onConverted<widened<at::kFloat>>},
    {"fmod.Tensor_out", &remainder},
    {"remainder.Tensor_out", &remainder},
    {"gcd.out", &gcd},
    {"lcm.out", &lcm},
    {"div.out_mode", &divide},
    {"logit_backward.grad_input", &logitBackward},
    {"igamma.out", &incompleteGamma<false>},
    {"igammac.out", &incompleteGamma<true>},
    {"_embedding_bag_dense_backward", &embeddingBagBackward},
    {"addmv.out", &addmv},
    {"avg_pool3d.out", &onConverted<withoutGaps>},
    {"gelu.out", &onConverted<withoutGaps>},
    {"narrow_copy.out", &onConverted<withoutGaps>},
    {"_ctc_loss", &onConverted<withoutGaps>},
    {"_ctc_loss.Tensor", &onConverted<withoutGaps>},
    {"_ctc_loss_backward", &onConverted<withoutGaps>},
    {"_ctc_loss_backward.Tensor", &onConverted<withoutGaps>},
};

// [common.corrected.find] A release may lack an operator of the table, and then nothing is corrected.
using Corrections = std::unordered_map<c10::OperatorHandle, Correction>;

const Corrections& corrections() {
  static const Corrections& table = *[] {
    auto* found = new Corrections;
    for (const auto& [name, correction] : kCorrections) {
      const auto op = math::findOperator(name);
      if (op) found->emplace(*op, correction);
    }
    return found;
  }();
  return table;
}

}  // namespace

// [common.corrected.call] Finding an operator in the table costs a few nanoseconds.
bool isCorrected(const c10::OperatorHandle& op) {
  return corrections().contains(op);
}

void callCorrected(const c10::OperatorHandle& op, Stack& stack) {
  const auto found = corrections().find(op);
  if (found == corrections().end()) return callCpuKernel(op, stack);
  Stack outputs(stack.begin() + inputsOf(op), stack.end());
  found->second(op, stack);
  if (!outputs.empty()) stack = std::move(outputs);
}

// [-]
}  // namespace openreg
