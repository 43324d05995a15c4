// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/kernels/rows.h"

#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "sources.h"

#include <ATen/core/Reduction.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <torch/library.h>

#include <array>

namespace openreg {
namespace {

// [opencl.rows.program] Rows are computed in float, or in double for doubles.
bool isReal(at::ArrayRef<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && !at::isFloatingType(tensor.scalar_type()))
      return false;
  }
  return knowsAll(tensors);
}

Program rowProgram(const char* name, at::ScalarType in, at::ScalarType out) {
  Program program(source::rows, name);
  program.operand("IN", in).operand("OUT", out).define("STORE", "STORE_OUT");
  return std::move(program.compute(dtypeOf(in)->compute));
}

void runRows(Launch& launch, const at::Tensor& on, int64_t count) {
  launch.run(on.device().index(), count, 1, 16);
}

// [opencl.rows.softmax-operators] Softmax and its logarithm differ in one macro.
template <bool kLog>
bool softmax(const at::Tensor& self, int64_t dim, at::Tensor& out) {
  if (self.numel() == 0) return true;
  if (!isReal({self, out})) return false;
  const at::Tensor in = self.contiguous();
  const Rows rows = self.dim() ? Rows(in, dim) : Rows(in.view(1), 0);
  const Target target(out, out.scalar_type());
  Program program = rowProgram("softmax", in.scalar_type(), out.scalar_type());
  if (kLog) program.define("LOG");
  Launch launch(program.function());
  launch.address(target.tensor()).address(in);
  launch.number(rows.outer).number(rows.n).number(rows.inner);
  runRows(launch, out, rows.count());
  target.finish();
  return true;
}

// [opencl.rows.softmax-launch-backward] The gradient of softmax needs its output, which is also in rows.
template <bool kLog>
bool softmaxBackward(const at::Tensor& gradient, const at::Tensor& output,
                     int64_t dim, at::Tensor& out) {
  if (output.numel() == 0) return true;
  if (!isReal({gradient, output, out}) ||
      gradient.scalar_type() != output.scalar_type()) {
    return false;
  }
  const at::Tensor g = gradient.contiguous(), y = output.contiguous();
  const Rows rows = y.dim() ? Rows(y, dim) : Rows(y.view(1), 0);
  const Target target(out, out.scalar_type());
  Program program =
      rowProgram("softmax_backward", y.scalar_type(), out.scalar_type());
  if (kLog) program.define("LOG");
  Launch launch(program.function());
  launch.address(target.tensor()).address(g).address(y);
  launch.number(rows.outer).number(rows.n).number(rows.inner);
  runRows(launch, out, rows.count());
  target.finish();
  return true;
}

at::Tensor& softmaxOut(const at::Tensor& self, int64_t dim, bool half_to_float,
                       at::Tensor& out) {
  Structured<at::meta::structured__softmax>(out, true).meta(self, dim,
                                                            half_to_float);
  if (softmax<false>(self, dim, out)) return out;
  return OPENREG_FALLBACK(_softmax, out, self, dim, half_to_float, out);
}

at::Tensor& logSoftmaxOut(const at::Tensor& self, int64_t dim,
                          bool half_to_float, at::Tensor& out) {
  Structured<at::meta::structured__log_softmax>(out, true).meta(self, dim,
                                                                half_to_float);
  if (softmax<true>(self, dim, out)) return out;
  return OPENREG_FALLBACK(_log_softmax, out, self, dim, half_to_float, out);
}

// [opencl.rows.softmax-gradients] The gradients have forms of their own, with the output among the arguments.
at::Tensor& softmaxBackwardOut(const at::Tensor& gradient,
                               const at::Tensor& output, int64_t dim,
                               at::ScalarType input_dtype, at::Tensor& out) {
  Structured<at::meta::structured__softmax_backward_data>(out, true).meta(
      gradient, output, dim, input_dtype);
  if (softmaxBackward<false>(gradient, output, dim, out)) return out;
  return OPENREG_FALLBACK(_softmax_backward_data, out, gradient, output, dim,
                          input_dtype, out);
}

at::Tensor& logSoftmaxBackwardOut(const at::Tensor& gradient,
                                  const at::Tensor& output, int64_t dim,
                                  at::ScalarType input_dtype, at::Tensor& out) {
  Structured<at::meta::structured__log_softmax_backward_data>(out, true).meta(
      gradient, output, dim, input_dtype);
  if (softmaxBackward<true>(gradient, output, dim, out)) return out;
  return OPENREG_FALLBACK(_log_softmax_backward_data, out, gradient, output,
                          dim, input_dtype, out);
}

// [opencl.rows.norm] The weight and the bias take two more operators, which already have kernels.
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three layerNorm(const at::Tensor& input, c10::SymIntArrayRef normalized_shape,
                const std::optional<at::Tensor>& weight,
                const std::optional<at::Tensor>& bias, double eps) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(normalized_shape);
  const int64_t n = c10::multiply_integers(shape);
  if (!isReal({input}) || n == 0) {
    return at::native::call_fallback_fn_symint<
        &fallback, at::_ops::native_layer_norm>::call(input, normalized_shape,
                                                      weight, bias, eps);
  }
  TORCH_CHECK(input.sizes().size() >= shape.size() &&
                  input.sizes().slice(input.dim() - shape.size()) == shape,
              "Given normalized_shape=", shape,
              ", expected input with shape [*", ", ...], but got input of size",
              input.sizes());
  const at::Tensor in = input.contiguous();
  auto sizes = in.sizes().vec();
  for (size_t d = sizes.size() - shape.size(); d < sizes.size(); ++d)
    sizes[d] = 1;
  at::Tensor out = at::empty(in.sizes(), in.options());
  const at::Tensor mean = at::empty(sizes, in.options());
  const at::Tensor scale = at::empty(sizes, in.options());
  Program program =
      rowProgram("layer_norm", in.scalar_type(), in.scalar_type());
  Launch launch(program.function());
  launch.address(out).address(mean).address(scale).address(in);
  launch.number(in.numel() / n).number(n).number(eps);
  runRows(launch, in, in.numel() / n);
  if (weight && weight->defined()) out.mul_(*weight);
  if (bias && bias->defined()) out.add_(*bias);
  return {out, mean, scale};
}

// [opencl.rows.norm-backward] Sums over the rows give the gradients of weight and bias.
Three layerNormBackward(const at::Tensor& gradient, const at::Tensor& input,
                        c10::SymIntArrayRef normalized_shape,
                        const at::Tensor& mean, const at::Tensor& scale,
                        const std::optional<at::Tensor>& weight,
                        const std::optional<at::Tensor>& bias,
                        std::array<bool, 3> mask) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(normalized_shape);
  const int64_t n = c10::multiply_integers(shape);
  if (!isReal({gradient, input, mean, scale}) || n == 0) {
    return at::native::call_fallback_fn_symint<
        &fallback, at::_ops::native_layer_norm_backward>::call(gradient, input,
                                                               normalized_shape,
                                                               mean, scale,
                                                               weight, bias,
                                                               mask);
  }
  const int64_t count = input.numel() / n;
  const at::Tensor normal = input.sub(mean).mul_(scale);
  at::Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) {
    const at::Tensor g =
        (weight && weight->defined() ? gradient.mul(*weight) : gradient)
            .contiguous();
    const at::Tensor x = normal.contiguous();
    grad_input = at::empty(input.sizes(), input.options());
    Program program = rowProgram("layer_norm_backward", input.scalar_type(),
                                 input.scalar_type());
    Launch launch(program.function());
    launch.address(grad_input).address(g).address(x).address(scale);
    launch.number(count).number(n);
    runRows(launch, input, count);
  }
  const auto overRows = [&](const at::Tensor& tensor) {
    return tensor.reshape({count, n}).sum(0).view(shape);
  };
  if (mask[1]) grad_weight = overRows(gradient.mul(normal));
  if (mask[2]) grad_bias = overRows(gradient);
  return {grad_input, grad_weight, grad_bias};
}

// [opencl.rows.loss] One kernel computes the loss of each row, and an existing operator adds them up.
bool canTakeLoss(const at::Tensor& self, const at::Tensor& target,
                 const std::optional<at::Tensor>& weight) {
  return isReal({self}) && target.scalar_type() == at::kLong &&
         self.dim() <= 2 && self.numel() > 0 && !(weight && weight->defined());
}

std::tuple<at::Tensor&, at::Tensor&> nllLossOut(
    const at::Tensor& self, const at::Tensor& target,
    const std::optional<at::Tensor>& weight, int64_t reduction,
    c10::SymInt ignore_index, at::Tensor& output, at::Tensor& total) {
  if (!canTakeLoss(self, target, weight)) {
    return at::native::call_fallback_fn_symint<
        &fallback, at::_ops::nll_loss_forward_output>::call(self, target,
                                                            weight, reduction,
                                                            ignore_index,
                                                            output, total);
  }
  const at::Tensor in = self.contiguous(), targets = target.contiguous();
  const int64_t classes = self.size(-1), rows = self.numel() / classes;
  const at::Tensor losses = at::empty(target.sizes(), self.options());
  const at::Tensor counts = at::empty(target.sizes(), self.options());
  Program program =
      rowProgram("nll_loss", self.scalar_type(), self.scalar_type());
  Launch launch(program.function());
  launch.address(losses).address(counts).address(in).address(targets);
  launch.number(rows).number(classes).number(ignore_index.expect_int());
  runRows(launch, self, rows);
  if (reduction == at::Reduction::None) {
    output.resize_(losses.sizes()).copy_(losses);
    total.resize_({}).zero_();
    return {output, total};
  }
  output.resize_({}).copy_(losses.sum());
  total.resize_({}).copy_(counts.sum());
  if (reduction == at::Reduction::Mean) output.div_(total);
  return {output, total};
}

// [opencl.rows.loss-backward] The gradient of the mean is divided by the number of rows that count.
at::Tensor& nllLossBackwardOut(const at::Tensor& gradient,
                               const at::Tensor& self, const at::Tensor& target,
                               const std::optional<at::Tensor>& weight,
                               int64_t reduction, c10::SymInt ignore_index,
                               const at::Tensor& total, at::Tensor& out) {
  if (!canTakeLoss(self, target, weight)) {
    return at::native::call_fallback_fn_symint<
        &fallback, at::_ops::nll_loss_backward_grad_input>::call(gradient, self,
                                                                 target, weight,
                                                                 reduction,
                                                                 ignore_index,
                                                                 total, out);
  }
  const at::Tensor targets = target.contiguous();
  const int64_t classes = self.size(-1), rows = self.numel() / classes;
  at::Tensor scale = gradient;
  if (reduction == at::Reduction::Mean) scale = gradient.div(total);
  scale = scale.expand(target.sizes()).contiguous();
  out.resize_(self.sizes());
  const Target result(out, self.scalar_type());
  Program program =
      rowProgram("nll_loss_backward", self.scalar_type(), self.scalar_type());
  Launch launch(program.function());
  launch.address(result.tensor()).address(scale).address(targets);
  launch.number(rows).number(classes).number(ignore_index.expect_int());
  runRows(launch, self, rows * classes);
  result.finish();
  return out;
}

// [opencl.rows.register] Layer norm is not structured, so its kernel makes its own outputs.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_softmax.out", &softmaxOut);
  m.impl("_log_softmax.out", &logSoftmaxOut);
  m.impl("_softmax_backward_data.out", &softmaxBackwardOut);
  m.impl("_log_softmax_backward_data.out", &logSoftmaxBackwardOut);
  m.impl("native_layer_norm", &layerNorm);
  m.impl("native_layer_norm_backward", &layerNormBackward);
  m.impl("nll_loss_forward.output", &nllLossOut);
  m.impl("nll_loss_backward.grad_input", &nllLossBackwardOut);
}

// [-]
}  // namespace
}  // namespace openreg
