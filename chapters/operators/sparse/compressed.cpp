// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/NativeFunctions.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/add.h>
#include <torch/library.h>

namespace openreg {

// [operators.sparse.entries.of] In the compressed layouts, the row of each entry is written out.
Entries entriesOf(const at::Tensor& matrix) {
  const at::Tensor coo = matrix.to_sparse();
  return {coo._indices()[0], coo._indices()[1], coo._values()};
}

namespace {

// [operators.sparse.compressed] A sum is computed in COO and compressed again.
at::Tensor& setCompressed(at::Tensor& out, const at::Tensor& made) {
  checkCast(made.scalar_type(), out.scalar_type());
  at::native::resize_as_sparse_compressed_(out, made);
  return out.copy_(made);
}

at::Tensor& addCompressedOut(const at::Tensor& self, const at::Tensor& other,
                             const at::Scalar& alpha, at::Tensor& out) {
  if (other.layout() == at::kStrided)
    return addSparseOut(other.mul(alpha), self.to_sparse(), 1, out);
  if (self.layout() == at::kStrided)
    return addSparseOut(self, other.to_sparse(), alpha, out);
  const at::Tensor sum = at::add(self.to_sparse(), other.to_sparse(), alpha);
  return setCompressed(out, sum.to_sparse(self.layout()));
}

// [operators.sparse.sampled] Only the entries of the product that `self` has are computed: each is a row times a column.
at::Tensor sampledAddmm(const at::Tensor& self, const at::Tensor& mat1,
                        const at::Tensor& mat2, const at::Scalar& beta,
                        const at::Scalar& alpha) {
  TORCH_CHECK(self.layout() == at::kSparseCsr && self.dim() == 2 &&
                  mat1.layout() == at::kStrided && mat1.dim() == 2 &&
                  mat2.layout() == at::kStrided && mat2.dim() == 2,
              "sparse_sampled_addmm: openreg takes a matrix in the layout CSR "
              "and two dense ones.");
  TORCH_CHECK(mat1.size(1) == mat2.size(0) && mat1.size(0) == self.size(0) &&
                  mat2.size(1) == self.size(1),
              "sparse_sampled_addmm: the product of ", mat1.sizes(), " and ",
              mat2.sizes(), " does not have the sizes of self, ", self.sizes(),
              ".");
  const auto type = self.scalar_type();
  TORCH_CHECK(
      type == at::kFloat || type == at::kDouble || at::isComplexType(type),
      "sparse_sampled_addmm: Expected self to be a floating-point or "
      "complex tensor, but got ",
      type);
  const auto [rows, columns, values] = entriesOf(self);
  const at::Tensor products =
      mat1.index_select(0, rows).mul(mat2.t().index_select(0, columns)).sum(1);
  return at::_sparse_compressed_tensor_unsafe(
      self.crow_indices().clone(), self.col_indices().clone(),
      values.mul(beta).add(products, alpha), self.sizes(), self.options());
}

at::Tensor& sampledAddmmOut(const at::Tensor& self, const at::Tensor& mat1,
                            const at::Tensor& mat2, const at::Scalar& beta,
                            const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "sparse_sampled_addmm: out must have the dtype of self, ",
              self.scalar_type(), "; it has ", out.scalar_type(), ".");
  return setCompressed(out, sampledAddmm(self, mat1, mat2, beta, alpha));
}

}  // namespace

// [operators.sparse.compressed.register] CSR, CSC, BSR and BSC share one dispatch key, and PyTorch's functions tell them apart.
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("add.out", &addCompressedOut);
  m.impl("sparse_sampled_addmm", &sampledAddmm);
  m.impl("sparse_sampled_addmm.out", &sampledAddmmOut);
  registerTheirs<c10::DispatchKey::SparseCsrCPU>(
      m,
      "empty.memory_format empty_like clone copy_ zero_ fill_.Scalar "
      "resize_ resize_as_sparse_ sparse_dim dense_dim _nnz values "
      "crow_indices col_indices ccol_indices row_indices sparse_mask "
      "add.Tensor add_.Tensor mul.Tensor mul_.Tensor mul.out mul.Scalar "
      "mul_.Scalar abs abs.out sgn sgn.out neg neg.out _conj_physical "
      "sum select.int");
}

// [-]
}  // namespace openreg
