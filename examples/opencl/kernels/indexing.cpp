// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/examples/opencl/kernels/rows.h"
#include "sources.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [opencl.indexing] An index is a long or an int; the elements are copied unchanged.
bool isIndex(const at::Tensor& index) {
  return index.scalar_type() == at::kLong || index.scalar_type() == at::kInt;
}

// [opencl.indexing.select] The kernel checks indices that the host cannot see.
at::Tensor indexSelect(const at::Tensor& self, int64_t dim,
                       const at::Tensor& index) {
  if (!isIndex(index) || self.element_size() > 8 || self.is_neg() ||
      self.is_conj() || self.dim() == 0) {
    return at::native::call_fallback_fn<&fallback,
                                        at::_ops::index_select>::call(self, dim,
                                                                      index);
  }
  TORCH_CHECK_INDEX(index.dim() <= 1,
                    "index_select(): Index is supposed to be a vector, but got "
                    "dim: ",
                    index.dim());
  dim = at::maybe_wrap_dim(dim, self.dim());
  const at::Tensor in = self.contiguous(), indices = index.contiguous();
  const Rows rows(in, dim);
  auto sizes = in.sizes().vec();
  sizes[dim] = indices.numel();
  at::Tensor out = at::empty(sizes, in.options());
  if (out.numel() == 0 || in.numel() == 0) return out.zero_();
  const char* units[] = {"uchar", "ushort", "uint", "ulong"};
  Program program(source::index, "index_select");
  program.operand("INDEX", indices.scalar_type()).compute("float");
  program.operand("IN", at::kFloat).operand("OUT", at::kFloat);
  program.define("STORE", "STORE_OUT");
  program.define("UNIT", units[c10::llvm::Log2_64(in.element_size())]);
  Launch(program.function())
      .address(out)
      .address(in)
      .address(indices)
      .number(rows.outer)
      .number(rows.n)
      .number(indices.numel())
      .number(rows.inner)
      .run(in.device().index(), out.numel());
  return out;
}

// [opencl.indexing.embedding] `embedding` is an index_select; only its gradient needs a kernel.
at::Tensor embeddingBackward(const at::Tensor& gradient,
                             const at::Tensor& indices, c10::SymInt rows,
                             c10::SymInt padding, bool scale_grad_by_freq) {
  if (!knowsAll({gradient}) || !isIndex(indices) || scale_grad_by_freq) {
    return at::native::call_fallback_fn_symint<
        &fallback,
        at::_ops::embedding_dense_backward>::call(gradient, indices, rows,
                                                  padding, scale_grad_by_freq);
  }
  const int64_t inner = gradient.size(-1), count = indices.numel();
  const at::Tensor out =
      at::zeros({rows.expect_int(), inner}, gradient.options());
  const at::Tensor g = gradient.contiguous(), places = indices.contiguous();
  Program program(source::index, "embedding_backward");
  program.operand("IN", g.scalar_type()).operand("OUT", g.scalar_type());
  program.operand("INDEX", places.scalar_type()).define("STORE", "STORE_OUT");
  program.define("UNIT", "uchar").compute(dtypeOf(g.scalar_type())->compute);
  Launch(program.function())
      .address(out)
      .address(g)
      .address(places)
      .number(count)
      .number(rows.expect_int())
      .number(inner)
      .number(padding.expect_int())
      .run(g.device().index(), count ? inner : 0, 1, 16);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("index_select", &indexSelect);
  m.impl("embedding_dense_backward", &embeddingBackward);
}

// [-]
}  // namespace
}  // namespace openreg
