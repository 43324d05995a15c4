// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/NativeFunctions.h>
#include <ATen/SparseCsrTensorUtils.h>

namespace openreg {

// [operators.sparse.conversions] A sparse tensor of any layout becomes COO, CSR or CSC here. Blocks of a sparse tensor are made on the CPU.
namespace {

/// PyTorch changes rows to columns with a stub that its headers do not declare,
/// so compressed tensors take the way through COO, whose indices are int64.
template <at::Layout layout>
at::Tensor recompress(const at::Tensor& self,
                      std::optional<int64_t> dense_dim) {
  using at::sparse_csr::get_sparse_csr_impl;
  if (self.layout() == layout) return self;
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.is_sparse() || !get_sparse_csr_impl(self)->batch_dim(),
      "A batch of ", self.layout(), " matrices becomes no ", layout,
      " on openreg; convert each matrix of it.");
  const at::Tensor coo = self.to_sparse();
  const at::Tensor made = layout == at::kSparseCsr
                              ? at::native::coo_to_sparse_csr(coo, dense_dim)
                              : at::native::coo_to_sparse_csc(coo, dense_dim);
  if (self.is_sparse()) return made;
  const auto type =
      get_sparse_csr_impl(self)->compressed_indices().scalar_type();
  const auto* const parts = get_sparse_csr_impl(made);
  return at::_sparse_compressed_tensor_unsafe(
      parts->compressed_indices().to(type), parts->plain_indices().to(type),
      parts->values(), made.sizes(), made.options());
}

// [operators.sparse.conversions.layout] One operator serves all layouts, and blocks need a size.
at::Tensor toSparseLayout(const at::Tensor& self,
                          std::optional<at::Layout> layout,
                          at::OptionalIntArrayRef blocks,
                          std::optional<int64_t> dense_dim) {
  const at::Layout to = layout.value_or(at::kSparse);
  if (to == at::kSparseCsr) return recompress<at::kSparseCsr>(self, dense_dim);
  if (to == at::kSparseCsc) return recompress<at::kSparseCsc>(self, dense_dim);
  if (to != at::kSparse) {
    TORCH_CHECK_VALUE(blocks, "to_sparse: the layout ", to,
                      " needs the size of its blocks, as blocksize.");
    return to == at::kSparseBsr ? self.to_sparse_bsr(*blocks, dense_dim)
                                : self.to_sparse_bsc(*blocks, dense_dim);
  }
  return self.is_sparse() ? self
                          : at::native::sparse_compressed_to_sparse(
                                self, layout, blocks, dense_dim);
}

}  // namespace

// [operators.sparse.conversions.register] From and to dense tensors, PyTorch's functions suffice.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  registerTheirs<c10::DispatchKey::CPU>(
      m,
      "_to_sparse _to_sparse.sparse_dim _to_sparse_csr _to_sparse_csc "
      "_to_sparse_bsr _to_sparse_bsc");
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_to_sparse", &toSparseLayout);
  m.impl("_to_sparse_csr", &recompress<at::kSparseCsr>);
  m.impl("_to_sparse_csc", &recompress<at::kSparseCsc>);
  registerTheirs<c10::DispatchKey::SparseCPU>(
      m, "_to_dense _to_sparse.sparse_dim");
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("_to_sparse", &toSparseLayout);
  m.impl("_to_sparse_csr", &recompress<at::kSparseCsr>);
  m.impl("_to_sparse_csc", &recompress<at::kSparseCsc>);
  registerTheirs<c10::DispatchKey::SparseCsrCPU>(
      m, "_to_dense _to_sparse.sparse_dim");
}

// [-]
}  // namespace openreg
