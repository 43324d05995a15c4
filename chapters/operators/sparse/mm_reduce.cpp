// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <array>
#include <string_view>
#include <tuple>

namespace openreg {
namespace {

// [operators.sparse.reduce.check] The same matrices as on the CPU.
/// The name of the reduction, of which extremes have two.
std::string_view checkReduction(const at::Tensor& self, const at::Tensor& other,
                                std::string_view reduce) {
  TORCH_CHECK(self.layout() == at::kSparseCsr && self.dim() == 2 &&
                  other.layout() == at::kStrided && other.dim() == 2 &&
                  self.size(1) == other.size(0),
              "sparse.mm with a reduction takes a matrix in the layout CSR and "
              "a dense one with as many rows as that has columns, ",
              self.size(-1), ".");
  TORCH_CHECK_NOT_IMPLEMENTED(
      at::isFloatingType(other.scalar_type()) &&
          self.scalar_type() == other.scalar_type(),
      "sparse.mm with a reduction takes matrices of one real floating dtype, "
      "not of ",
      self.scalar_type(), " and ", other.scalar_type(), ".");
  if (reduce == "max") return "amax";
  if (reduce == "min") return "amin";
  TORCH_CHECK_VALUE(reduce == "sum" || reduce == "mean" || reduce == "amax" ||
                        reduce == "amin",
                    "reduce is \"", reduce,
                    "\"; it must be sum, mean, amax or amin.");
  return reduce;
}

// [operators.sparse.reduce.extremes] The backward pass of an extreme asks which entry it was. Of equal ones it was the first.
at::Tensor entriesOfExtremes(const at::Tensor& products,
                             const at::Tensor& extremes,
                             const at::Tensor& rows) {
  const int64_t none = rows.size(0);
  const at::Tensor entries = at::arange(none, rows.options()).unsqueeze(1);
  const at::Tensor chosen =
      at::where(products.eq(extremes.index_select(0, rows)), entries, none);
  return at::full(extremes.sizes(), none, rows.options())
      .index_reduce_(0, rows, chosen, "amin");
}

// [operators.sparse.reduce] A product whose sums may also be means or extremes. A row without entries is zero.
at::Tensor rowLengths(const at::Tensor& csr) {
  return csr.crow_indices().diff().clamp_min(1).unsqueeze(1);
}

std::tuple<at::Tensor, at::Tensor> mmReduce(const at::Tensor& self,
                                            const at::Tensor& other,
                                            std::string_view reduce) {
  reduce = checkReduction(self, other, reduce);
  const auto [rows, columns, values] = entriesOf(self);
  const auto type = at::toOpMathType(other.scalar_type());
  const at::Tensor products =
      values.to(type).unsqueeze(1) * other.to(type).index_select(0, columns);
  at::Tensor out = at::zeros({self.size(0), other.size(1)}, products.options());
  at::Tensor winners = at::empty({0}, rows.options());
  if (reduce == "sum" || reduce == "mean") {
    out.index_add_(0, rows, products);
    if (reduce == "mean") out.div_(rowLengths(self));
    return {out.to(other.scalar_type()), winners};
  }
  out.index_reduce_(0, rows, products, reduce, /*include_self=*/false);
  if (at::GradMode::is_enabled() &&
      (self.requires_grad() || other.requires_grad())) {
    winners = entriesOfExtremes(products, out, rows);
  }
  return {out.to(other.scalar_type()), winners};
}

// [operators.sparse.reduce.backward] The gradient of an extreme goes to the entry that was the extreme, and to none in a row without entries.
std::tuple<at::Tensor, at::Tensor> mmReduceBackward(
    const at::Tensor& self, const at::Tensor& grad, const at::Tensor& other,
    std::string_view reduce, const at::Tensor& winners,
    std::array<bool, 2> needed) {
  const auto [rows, columns, values] = entriesOf(self);
  at::Tensor of_values = at::zeros_like(values);
  at::Tensor of_other = at::zeros_like(other);
  if (reduce == "sum" || reduce == "mean") {
    const at::Tensor each = (reduce == "mean" ? grad / rowLengths(self) : grad)
                                .index_select(0, rows);
    if (needed[0]) of_values = each.mul(other.index_select(0, columns)).sum(1);
    if (needed[1]) of_other.index_add_(0, columns, each * values.unsqueeze(1));
  } else if (self._nnz() > 0) {
    const at::Tensor nowhere = winners.eq(self._nnz());
    const at::Tensor entry = winners.masked_fill(nowhere, 0);
    const at::Tensor column = columns.take(entry);
    // Masked last, because a product with infinity would not be zero.
    const auto share = [&](const at::Tensor& factor) {
      return grad.mul(factor).masked_fill(nowhere, 0);
    };
    of_values.scatter_add_(0, entry.flatten(),
                           share(other.gather(0, column)).flatten());
    of_other.scatter_add_(0, column, share(values.take(entry)));
  }
  return {needed[0] ? at::_sparse_compressed_tensor_unsafe(
                          self.crow_indices(), self.col_indices(), of_values,
                          self.sizes(), self.options())
                    : at::Tensor(),
          needed[1] ? of_other : at::Tensor()};
}

}  // namespace

// [operators.sparse.reduce.register] PyTorch has these two for CSR only.
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("_sparse_mm_reduce_impl", &mmReduce);
  m.impl("_sparse_mm_reduce_impl_backward", &mmReduceBackward);
}

// [-]
}  // namespace openreg
