// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/examples/opencl/kernels/matmul.h"
#include "torch_openreg/examples/opencl/kernels/rows.h"
#include "sources.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <torch/library.h>

#include <array>

namespace openreg {
namespace {

using Sizes = at::IntArrayRef;
using SymSizes = c10::SymIntArrayRef;

// [opencl.images.windows] The kernels get the windows of convolutions and of poolings in the same form.
struct Windows {
  int64_t channels, height, width, rows, columns;
  int64_t kernel[2], stride[2], padding[2], dilation[2];
};

Windows windowsOf(const at::Tensor& image, Sizes kernel, Sizes stride,
                  Sizes padding, Sizes dilation, bool ceil_mode) {
  Windows w{
      image.size(-3), image.size(-2), image.size(-1), 0, 0, {}, {}, {}, {}};
  const auto both = [](int64_t* to, Sizes from) {
    to[0] = from.front();
    to[1] = from.back();
  };
  both(w.kernel, kernel);
  both(w.stride, stride.empty() ? kernel : stride);
  both(w.padding, padding);
  both(w.dilation, dilation);
  const auto count = [&](int d, int64_t size) {
    const int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
    const int64_t left = size + 2 * w.padding[d] - reach;
    int64_t n = left / w.stride[d] + 1;
    // A window that the ceiling adds must begin inside of the image.
    if (ceil_mode && left % w.stride[d] != 0 &&
        n * w.stride[d] < size + w.padding[d])
      ++n;
    return n;
  };
  w.rows = count(0, w.height);
  w.columns = count(1, w.width);
  return w;
}

// [opencl.images.program] The kernels of images share a source, and most of their arguments.
Program imageProgram(const char* name, at::ScalarType dtype) {
  Program program(source::images, name);
  program.operand("", dtype);
  return std::move(program.compute(dtypeOf(dtype)->compute));
}

void runImages(const char* name, const at::Tensor& out, const at::Tensor& in,
               const Windows& windows) {
  Launch(imageProgram(name, out.scalar_type()).function())
      .address(out)
      .address(in)
      .number(out.numel())
      .number(windows)
      .run(out.device().index(), out.numel(), 1, 64);
}

// [opencl.images.convolution] A convolution of images is one product for each image; the fallback takes the other kinds.
struct Geometry {
  SymSizes stride, padding, dilation;
  bool transposed;
  SymSizes output_padding;
  c10::SymInt groups;

  bool hasKernel(const at::Tensor& input, const at::Tensor& weight) const {
    const at::ScalarType dtype = input.scalar_type();
    return input.dim() == 4 && !transposed && groups == 1 &&
           at::isFloatingType(dtype) && weight.scalar_type() == dtype &&
           knowsAll({input, weight}) && input.numel() > 0;
  }

  Windows windows(const at::Tensor& input, const at::Tensor& weight) const {
    return windowsOf(input, weight.sizes().slice(2),
                     C10_AS_INTARRAYREF_SLOW(stride),
                     C10_AS_INTARRAYREF_SLOW(padding),
                     C10_AS_INTARRAYREF_SLOW(dilation), false);
  }
};

/// Room for the windows of `input` as columns: [n, channels * kernel, windows].
at::Tensor emptyColumns(const at::Tensor& input, const Windows& w) {
  return at::empty({input.size(0), w.channels * w.kernel[0] * w.kernel[1],
                    w.rows * w.columns},
                   input.options());
}

at::Tensor columnsOf(const at::Tensor& input, const Windows& w) {
  const at::Tensor columns = emptyColumns(input, w);
  runImages("unfold", columns, input.contiguous(), w);
  return columns;
}

/// The weight as a matrix, once for each image.
at::Tensor weightFor(const at::Tensor& input, const at::Tensor& weight) {
  const at::Tensor matrix = weight.reshape({1, weight.size(0), -1});
  return matrix.expand({input.size(0), matrix.size(1), matrix.size(2)});
}

// [opencl.images.forward] PyTorch checks the sizes before it calls this operator.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, SymSizes stride,
                       SymSizes padding, SymSizes dilation, bool transposed,
                       SymSizes output_padding, c10::SymInt groups) {
  const Geometry geometry{stride,     padding,        dilation,
                          transposed, output_padding, groups};
  if (!geometry.hasKernel(input, weight)) {
    return at::native::call_fallback_fn_symint<
        &fallback, at::_ops::convolution>::call(input, weight, bias, stride,
                                                padding, dilation, transposed,
                                                output_padding, groups);
  }
  const Windows w = geometry.windows(input, weight);
  at::Tensor out = at::empty(
      {input.size(0), weight.size(0), w.rows * w.columns}, input.options());
  const bool adds = bias && bias->defined();
  multiply(out, weightFor(input, weight), columnsOf(input, w),
           adds ? bias->view({1, -1, 1}).expand(out.sizes()) : out, adds, 1);
  return out.view({input.size(0), weight.size(0), w.rows, w.columns});
}

// [opencl.images.backward] The gradients are two products with the same columns, and one sum.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolutionBackward(
    const at::Tensor& gradient, const at::Tensor& input,
    const at::Tensor& weight, SymSizes stride, SymSizes padding,
    SymSizes dilation, bool transposed, SymSizes output_padding,
    c10::SymInt groups, std::array<bool, 3> mask) {
  const Geometry geometry{stride,     padding,        dilation,
                          transposed, output_padding, groups};
  if (!geometry.hasKernel(input, weight)) {
    const c10::SymInt channels = gradient.sym_size(1);
    return at::native::call_fallback_fn_symint<
        &fallback, at::_ops::convolution_backward>::call(gradient, input,
                                                         weight,
                                                         SymSizes(channels),
                                                         stride, padding,
                                                         dilation, transposed,
                                                         output_padding, groups,
                                                         mask);
  }
  const Windows w = geometry.windows(input, weight);
  const at::Tensor g = gradient.reshape({input.size(0), weight.size(0), -1});
  at::Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) {
    const at::Tensor columns = emptyColumns(input, w);
    multiply(columns, weightFor(input, weight).transpose(1, 2), g, columns, 0,
             1);
    grad_input = at::empty(input.sizes(), input.options());
    runImages("fold", grad_input, columns, w);
  }
  if (mask[1]) {
    const at::Tensor columns = columnsOf(input, w);
    const at::Tensor each = at::empty(
        {input.size(0), weight.size(0), columns.size(1)}, input.options());
    multiply(each, g, columns.transpose(1, 2), each, 0, 1);
    grad_weight = each.sum(0).view(weight.sizes());
  }
  if (mask[2]) grad_bias = g.sum({0, 2});
  return {grad_input, grad_weight, grad_bias};
}

// [opencl.images.pooling] Pooling has an `.out` form; PyTorch's meta function has given the outputs the right size.
std::tuple<at::Tensor&, at::Tensor&> maxPoolOut(const at::Tensor& self,
                                                Sizes kernel, Sizes stride,
                                                Sizes padding, Sizes dilation,
                                                bool ceil_mode, at::Tensor& out,
                                                at::Tensor& indices) {
  if (!knowsAll({self}) || !at::isFloatingType(self.scalar_type()) ||
      self.dim() < 3 || self.numel() == 0) {
    return OPENREG_FALLBACK(max_pool2d_with_indices, out, self, kernel, stride,
                            padding, dilation, ceil_mode, out, indices);
  }
  const at::Tensor in = self.contiguous();
  const Windows w = windowsOf(in, kernel, stride, padding, dilation, ceil_mode);
  auto sizes = in.sizes().vec();
  sizes[in.dim() - 2] = w.rows;
  sizes[in.dim() - 1] = w.columns;
  out.resize_(sizes);
  indices.resize_(sizes);
  const Target result(out, in.scalar_type()), places(indices, at::kLong);
  Launch(imageProgram("max_pool", in.scalar_type()).function())
      .address(result.tensor())
      .address(places.tensor())
      .address(in)
      .number(out.numel())
      .number(w)
      .run(in.device().index(), out.numel(), 1, 64);
  result.finish();
  places.finish();
  return {out, indices};
}

// [opencl.images.pooling-backward] The gradient goes to the positions that the forward pass has kept.
at::Tensor& maxPoolBackwardOut(const at::Tensor& gradient,
                               const at::Tensor& self, Sizes kernel,
                               Sizes stride, Sizes padding, Sizes dilation,
                               bool ceil_mode, const at::Tensor& indices,
                               at::Tensor& out) {
  if (!knowsAll({self, gradient}) || !at::isFloatingType(self.scalar_type()) ||
      self.numel() == 0) {
    return OPENREG_FALLBACK(max_pool2d_with_indices_backward, grad_input,
                            gradient, self, kernel, stride, padding, dilation,
                            ceil_mode, indices, out);
  }
  out.resize_(self.sizes());
  const at::Tensor g = gradient.contiguous(), places = indices.contiguous();
  const Target result(out, self.scalar_type());
  const int64_t pixels = self.size(-1) * self.size(-2);
  const int64_t planes = self.numel() / pixels;
  Launch(imageProgram("max_pool_backward", self.scalar_type()).function())
      .address(result.tensor())
      .address(g)
      .address(places)
      .number(planes)
      .number(g.numel() / planes)
      .number(pixels)
      .run(self.device().index(), planes, 1, 16);
  result.finish();
  return out;
}

// [opencl.images.register] PyTorch's default kernels for the convolutions only throw an error.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolutionBackward);
  m.impl("max_pool2d_with_indices.out", &maxPoolOut);
  m.impl("max_pool2d_with_indices_backward.grad_input", &maxPoolBackwardOut);
}

// [-]
}  // namespace
}  // namespace openreg
