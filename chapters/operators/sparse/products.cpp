// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_sparse_sparse_matmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace openreg {

namespace {

// [operators.sparse.addmm] A product that does not fit is refused before anything is enqueued.
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

void checkSum(const at::Tensor& sum, const at::Tensor& mat1) {
  TORCH_CHECK(sum.scalar_type() == mat1.scalar_type(),
              "addmm: the result is of ", mat1.dtype(), ", but got ",
              sum.dtype(), ".");
}

at::Tensor resolved(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg();
}

// [operators.sparse.addmm.row] The elements of a row are neighbors, unless the matrix is transposed.
/// to += factor * from, from element `begin` to `end`; `out_step` and `in_step`
/// are from one element to the next.
template <class T, class Wide>
void addRow(T* to, int64_t out_step, const T* from, int64_t in_step,
            Wide factor, int64_t begin, int64_t end) {
  const auto add = [factor](T& sum, T x) {
    sum =
        static_cast<T>(static_cast<Wide>(sum) + factor * static_cast<Wide>(x));
  };
  if (out_step == 1 && in_step == 1) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) add(to[i], from[i]);
  } else {
    for (int64_t i = begin; i < end; ++i)
      add(to[i * out_step], from[i * in_step]);
  }
}

// [operators.sparse.addmm.kernel] Each thread computes some columns of the product, and adds to them in the order of the entries.
/// out[row, :] += scale * value * dense[column, :] for each entry.
void addRows(at::Tensor out, const at::Tensor& dense, const at::Tensor& rows,
             const at::Tensor& columns, const at::Tensor& values,
             const at::Scalar& scale) {
  AT_DISPATCH_V2(
      out.scalar_type(), "addmm", AT_WRAP([&] {
        using Wide = at::opmath_type<scalar_t>;
        const auto row = rows.accessor<int64_t, 1>();
        const auto column = columns.accessor<int64_t, 1>();
        const auto value = values.accessor<scalar_t, 1>();
        const auto* from = dense.const_data_ptr<scalar_t>();
        auto* const to = out.mutable_data_ptr<scalar_t>();
        const auto factor = scale.to<Wide>();
        const int64_t height = out.size(0), out_row = out.stride(0),
                      out_step = out.stride(1), depth = dense.size(0),
                      in_row = dense.stride(0), in_step = dense.stride(1);
        at::parallel_for(0, out.size(1), 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = 0; i < value.size(0); ++i) {
            const int64_t r = row[i], c = column[i];
            TORCH_CHECK_INDEX(r >= 0 && r < height && c >= 0 && c < depth,
                              "An entry at (", r, ", ", c,
                              ") is outside of the matrix.");
            addRow(to + r * out_row, out_step, from + c * in_row, in_step,
                   factor * static_cast<Wide>(value[i]), begin, end);
          }
        });
      }),
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), at::kHalf, at::kBFloat16);
}

// [operators.sparse.addmm.add] A product with a sparse second factor is one of the transposed matrices.
at::Tensor& addProduct(at::Tensor& out, const at::Tensor& mat1,
                       const at::Tensor& mat2, const at::Scalar& alpha) {
  const bool is_second = mat1.layout() == at::kStrided;
  if (!is_second && mat2.layout() != at::kStrided) {
    const at::Tensor product =
        at::_sparse_sparse_matmul(mat1.to_sparse(), mat2.to_sparse());
    return out.add_(product, alpha);
  }
  at::assert_no_internal_overlap(out);
  const Entries entries = entriesOf(is_second ? mat2 : mat1);
  const at::Tensor dense = resolved(is_second ? mat1.t() : mat2);
  // The kernel reads and writes numbers as they are in memory.
  const bool has_bits = out.is_conj() || out.is_neg();
  const at::Tensor sum = has_bits ? at::zeros_like(out) : out;
  launchRehearsed(
      "addmm",
      [alpha](at::Tensor out, const at::Tensor& dense, const at::Tensor& rows,
              const at::Tensor& columns, const at::Tensor& values) {
        addRows(out, dense, rows, columns, values, alpha);
      },
      is_second ? sum.t() : sum, dense,
      is_second ? entries.columns : entries.rows,
      is_second ? entries.rows : entries.columns, resolved(entries.values));
  return has_bits ? out.add_(sum) : out;
}

// [operators.sparse.addmm.out] The same for all layouts. With beta = 0, `self` is not read: it may be NaN.
at::Tensor& sparseAddmmOut(const at::Tensor& self, const at::Tensor& mat1,
                           const at::Tensor& mat2, const at::Scalar& beta,
                           const at::Scalar& alpha, at::Tensor& out) {
  checkProduct(mat1, mat2);
  TORCH_CHECK(self.layout() == at::kStrided && out.layout() == at::kStrided,
              "addmm: expected strided result tensor, got tensor with layout ",
              self.layout() == at::kStrided ? out.layout() : self.layout(),
              "; make it dense with to_dense().");
  checkSum(self, mat1);
  checkSum(out, mat1);
  const at::Tensor start = self.expand({mat1.size(0), mat2.size(1)});
  at::native::resize_output(out, start.sizes());
  if (beta.toComplexDouble() == 0.) {
    out.zero_();
  } else {
    out.copy_(start).mul_(beta);
  }
  return addProduct(out, mat1, mat2, alpha);
}

// [operators.sparse.addmm.forms] A product of two compressed matrices is compressed, and so is its sum with a third.
at::Tensor sparseMm(const at::Tensor& self, const at::Tensor& mat2) {
  checkProduct(self, mat2);
  if (self.layout() != at::kStrided && mat2.layout() != at::kStrided)
    return at::_sparse_sparse_matmul(self.to_sparse(), mat2.to_sparse())
        .to_sparse(self.layout() == at::kSparse ? at::kSparse : at::kSparseCsr);
  at::Tensor out = at::zeros({self.size(0), mat2.size(1)},
                             mat2.options().layout(at::kStrided));
  return addProduct(out, self, mat2, 1);
}

at::Tensor sparseAddmm(const at::Tensor& self, const at::Tensor& mat1,
                       const at::Tensor& mat2, const at::Scalar& beta,
                       const at::Scalar& alpha) {
  const bool is_compressed = self.layout() == at::kSparseCsr;
  if (is_compressed && mat1.layout() != at::kStrided &&
      mat2.layout() != at::kStrided) {
    const at::Tensor product = sparseMm(mat1, mat2).mul(alpha);
    return beta.toComplexDouble() == 0. ? product : product.add(self, beta);
  }
  at::Tensor out = at::empty({0}, self.options().layout(at::kStrided));
  return sparseAddmmOut(self, mat1, mat2, beta, alpha, out);
}

}  // namespace

// [operators.sparse.addmm.register] For COO, PyTorch's `mm` also takes a sparse matrix as the second, and `mv` is a product with one column.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("addmm", &sparseAddmm);
  m.impl("addmm.out", &sparseAddmmOut);
  registerTheirs<c10::DispatchKey::SparseCPU>(m, "mm mv");
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("addmm", &sparseAddmm);
  m.impl("addmm.out", &sparseAddmmOut);
  m.impl("mm", &sparseMm);
  registerTheirs<c10::DispatchKey::SparseCPU>(m, "mv");
}

// [-]
}  // namespace openreg
