// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/NativeFunctions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_sparse_sparse_matmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>

namespace openreg {

// [operators.sparse.addmm] Each entry of the sparse matrix scales a row of the other, and adds it to a row of the product.
Entries entriesOf(const at::Tensor& matrix) {
  const at::Tensor coo = matrix.to_sparse();
  return {coo._indices()[0], coo._indices()[1], coo._values()};
}

namespace {

void checkProduct(const at::Tensor& mat1, const at::Tensor& mat2) {
  TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "addmm: expected matrices, ",
              "but got tensors of ", mat1.dim(), " and ", mat2.dim(),
              " dimensions.");
  TORCH_CHECK(mat1.size(1) == mat2.size(0),
              "mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x",
              mat1.size(1), " and ", mat2.size(0), "x", mat2.size(1), ")");
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(),
              "expected mat1 and mat2 to have the same dtype, but got: ",
              mat1.dtype(), " != ", mat2.dtype());
}

// [operators.sparse.addmm.parts] A scaled row for every entry might not fit into the device's memory, so they are made in parts.
/// Calls `add` for parts of the entries, whose rows of `length` elements are
/// 16 Mi elements together.
template <class Add>
void inParts(const Entries& entries, int64_t length, const Add& add) {
  const int64_t count = entries.values.size(0);
  const int64_t step =
      std::max<int64_t>(1, (1 << 24) / std::max<int64_t>(1, length));
  for (int64_t begin = 0; begin < count; begin += step) {
    const auto part = [&](const at::Tensor& all) {
      return all.slice(0, begin, begin + step);
    };
    add(part(entries.rows), part(entries.columns), part(entries.values));
  }
}

at::Tensor& addProduct(at::Tensor& out, const at::Tensor& mat1,
                       const at::Tensor& mat2, const at::Scalar& alpha) {
  if (mat1.layout() != at::kStrided && mat2.layout() != at::kStrided) {
    const at::Tensor product =
        at::_sparse_sparse_matmul(mat1.to_sparse(), mat2.to_sparse());
    return out.add_(product, alpha);
  }
  if (mat1.layout() == at::kStrided) {
    inParts(entriesOf(mat2), mat1.size(0),
            [&](const auto& rows, const auto& columns, const auto& values) {
              out.index_add_(1, columns, mat1.index_select(1, rows) * values,
                             alpha);
            });
  } else {
    inParts(entriesOf(mat1), mat2.size(1),
            [&](const auto& rows, const auto& columns, const auto& values) {
              const at::Tensor found = mat2.index_select(0, columns);
              out.index_add_(0, rows, found * values.unsqueeze(1), alpha);
            });
  }
  return out;
}

// [operators.sparse.addmm.out] The same for all layouts. With beta = 0, `self` is not read: it may be NaN. A compressed product has the layout CSR.
at::Tensor& sparseAddmmOut(const at::Tensor& self, const at::Tensor& mat1,
                           const at::Tensor& mat2, const at::Scalar& beta,
                           const at::Scalar& alpha, at::Tensor& out) {
  checkProduct(mat1, mat2);
  TORCH_CHECK(self.layout() == at::kStrided && out.layout() == at::kStrided,
              "addmm: expected strided result tensor, got tensor with layout ",
              self.layout() == at::kStrided ? out.layout() : self.layout(),
              "; make it dense with to_dense().");
  const at::Tensor start = self.expand({mat1.size(0), mat2.size(1)});
  at::native::resize_output(out, start.sizes());
  if (beta.toComplexDouble() == 0.) {
    out.zero_();
  } else {
    out.copy_(start).mul_(beta);
  }
  return addProduct(out, mat1, mat2, alpha);
}

at::Tensor sparseAddmm(const at::Tensor& self, const at::Tensor& mat1,
                       const at::Tensor& mat2, const at::Scalar& beta,
                       const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, self.options().layout(at::kStrided));
  return sparseAddmmOut(self, mat1, mat2, beta, alpha, out);
}

at::Tensor sparseMm(const at::Tensor& self, const at::Tensor& mat2) {
  checkProduct(self, mat2);
  if (self.layout() != at::kStrided && mat2.layout() != at::kStrided)
    return at::_sparse_sparse_matmul(self.to_sparse(), mat2.to_sparse())
        .to_sparse(self.layout() == at::kSparse ? at::kSparse : at::kSparseCsr);
  at::Tensor out = at::zeros({self.size(0), mat2.size(1)},
                             mat2.options().layout(at::kStrided));
  return addProduct(out, self, mat2, 1);
}

}  // namespace

// [operators.sparse.addmm.register] For COO, PyTorch's `mm` also takes a sparse matrix as the second, and `mv` is a product with one column.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("addmm", &sparseAddmm);
  m.impl("addmm.out", &sparseAddmmOut);
  m.impl("mm", static_cast<decltype(sparseMm)*>(&at::native::_sparse_mm));
  m.impl("mv", &at::native::mv_sparse);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("addmm", &sparseAddmm);
  m.impl("addmm.out", &sparseAddmmOut);
  m.impl("mm", &sparseMm);
  m.impl("mv", &at::native::mv_sparse);
}

// [-]
}  // namespace openreg
