// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"
#include "torch_openreg/examples/opencl/kernels/elementwise.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zero.h>
#include <torch/library.h>

namespace openreg {

namespace {

// [opencl.copies.raw] Numbers that the kernels cannot compute with can still be copied, as other numbers of the same size.
bool haveSameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() &&
         a.is_neg() == b.is_neg();
}

/// `tensor` with a dtype that the kernels support, over the same bytes.
at::Tensor asKnown(at::Tensor tensor) {
  if (tensor.is_neg()) tensor = tensor._neg_view();
  if (tensor.is_conj()) tensor = tensor.conj();
  if (tensor.is_complex()) return at::view_as_real(tensor);
  constexpr at::ScalarType kBySize[] = {at::kByte, at::kShort, at::kInt,
                                        at::kLong};
  return dtypeOf(tensor.scalar_type())
             ? tensor
             : tensor.view(kBySize[c10::llvm::Log2_64(tensor.element_size())]);
}

/// A tensor like `model` without gaps on `device`, with its bits.
at::Tensor emptyAs(const at::Tensor& model, c10::Device device) {
  at::Tensor made = at::empty(model.sizes(), model.options().device(device));
  made._set_conj(model.is_conj());
  made._set_neg(model.is_neg());
  return made;
}

// [opencl.copies.host] The host makes all other conversions, from and to complex numbers and 8-bit dtypes.
void convertOnHost(const at::Tensor& to, const at::Tensor& from) {
  at::Tensor dense = emptyAs(from, from.device());
  launchConversion(dense, from);
  at::Tensor source = emptyAs(from, at::kCPU), result = emptyAs(to, at::kCPU);
  source.copy_(dense);
  copyOnCpu(result, source);
  to.copy_(result);
}

}  // namespace

// [opencl.copies] `copy.cpp` calls this function and is otherwise unchanged.
void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  const bool raw = haveSameBits(to, from);
  if (!raw && !(knowsAll({to, from}) && !to.is_conj())) {
    return convertOnHost(to, from);
  }
  const at::Tensor target = raw ? asKnown(to) : to;
  const at::Tensor source = raw ? asKnown(from) : from;
  const at::TensorIterator iterator = at::TensorIteratorConfig()
                                          .check_all_same_dtype(false)
                                          .resize_outputs(false)
                                          .set_check_mem_overlap(false)
                                          .add_output(target)
                                          .add_const_input(source)
                                          .build();
  launchFormula(iterator, source.scalar_type(), "a");
}

namespace {

// [opencl.copies.fill] A fill is a formula without operands, and the host refuses a value that the dtype cannot hold.
at::Tensor& fillScalar(at::Tensor& self, const at::Scalar& value) {
  at::empty({2}, self.options().device(at::kCPU)).fill_(value);
  const at::TensorIterator iterator = at::TensorIteratorConfig()
                                          .check_all_same_dtype(false)
                                          .resize_outputs(false)
                                          .add_output(self)
                                          .build();
  if (value.isComplex() || !canLaunch(iterator, self.scalar_type())) {
    return at::native::call_fallback_fn<&fallback,
                                        at::_ops::fill__Scalar>::call(self,
                                                                      value);
  }
  launchFormula(iterator, self.scalar_type(), "s", value);
  return self;
}

at::Tensor& fillTensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK_VALUE(value.dim() == 0,
                    "fill_ takes a tensor of 0 dimensions, not of ",
                    value.dim(), ".");
  return fillScalar(self, value.item());
}

at::Tensor& zero(at::Tensor& self) { return fillScalar(self, 0); }

// [opencl.copies.register] PyTorch composes `full`, `ones` and `zeros` of the fills.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", &fillScalar);
  m.impl("fill_.Tensor", &fillTensor);
  m.impl("zero_", &zero);
}

// [-]
}  // namespace
}  // namespace openreg
