// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Resize.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_sparse_broadcast_to.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>

namespace openreg {

// [operators.sparse.cast] A result is converted to the dtype of the output that the user passed.
void checkCast(at::ScalarType from, at::ScalarType to) {
  TORCH_CHECK(at::canCast(from, to), "result type ", from,
              " can't be cast to the desired output type ", to);
}

namespace {

// [operators.sparse.positions] One number for each index: its position among the sparse dimensions in row-major order.
at::Tensor positions(const at::Tensor& indices, at::IntArrayRef sizes) {
  at::Tensor positions = at::zeros({indices.size(1)}, indices.options());
  for (int64_t dim = 0; dim < indices.size(0); ++dim) {
    positions = positions * sizes[dim] + indices[dim];
  }
  return positions;
}

at::Tensor positionsOf(const at::Tensor& sparse) {
  return positions(sparse._indices(), sparse.sizes());
}

// [operators.sparse.assign] A kernel computes new indices and values, and the output takes them over without a copy.
at::Tensor& setParts(at::Tensor& out, const at::Tensor& like,
                     const at::Tensor& indices, const at::Tensor& values,
                     bool coalesced) {
  checkCast(values.scalar_type(), out.scalar_type());
  // Copied: `like` may be `out`.
  const auto sizes = like.sizes().vec();
  out.sparse_resize_and_clear_(sizes, indices.size(0), values.dim() - 1);
  at::sparse::alias_into_sparse(out, indices, values.to(out.scalar_type()));
  out._coalesced_(coalesced);
  return out;
}

// [operators.sparse.coalesce] The number of distinct indices depends on the data, so this is where the host waits.
at::Tensor coalesceSparse(const at::Tensor& self) {
  if (self._nnz() < 2) return self.clone()._coalesced_(true);
  const at::Tensor indices = self._indices(), values = self._values();
  const auto [distinct, which, counts] =
      at::_unique2(positionsOf(self), /*sorted=*/true, /*return_inverse=*/true);
  auto shape = values.sizes().vec();
  shape.front() = distinct.size(0);
  at::Tensor made = at::empty({0}, self.options());
  return setParts(
      made, self,
      at::empty({indices.size(0), shape.front()}, indices.options())
          .index_copy_(1, which, indices),
      at::zeros(shape, values.options()).index_add_(0, which, values),
      /*coalesced=*/true);
}

// [operators.sparse.lookup] For each index of `where`, the value of `tensor`: read if it is dense, and else found by binary search.
Indices indexOf(const at::Tensor& sparse) {
  Indices index;
  for (const at::Tensor& each : sparse._indices().unbind()) {
    index.push_back(each);
  }
  return index;
}

/// Values, and which of them are zeros in place of absent ones.
struct Found {
  at::Tensor values, missing;
};

Found valuesAt(const at::Tensor& where, const at::Tensor& tensor) {
  const at::Tensor values = where._values();
  if (!tensor.is_sparse() || !at::sparse::is_same_density(where, tensor)) {
    const at::Tensor dense = tensor.to_dense().expand(where.sizes());
    return {where.sparse_dim() ? dense.index(indexOf(where))
                               : dense.expand_as(values).clone(),
            {}};
  }
  const at::Tensor known = tensor.coalesce();
  if (known._nnz() == 0)
    return {at::zeros_like(values, known.scalar_type()),
            at::ones({}, values.options().dtype(at::kBool))};
  const at::Tensor wanted = positionsOf(where), positions = positionsOf(known);
  const at::Tensor place =
      at::searchsorted(positions, wanted).clamp_max(known._nnz() - 1);
  std::vector<int64_t> column(values.dim(), 1);
  column.front() = -1;
  const at::Tensor missing =
      positions.index_select(0, place).ne(wanted).view(column);
  return {known._values().index_select(0, place).masked_fill(missing, 0),
          missing};
}

// [operators.sparse.mask] The values of one tensor at the indices of another.
at::Tensor sparseMask(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(self.sizes() == mask.sizes(), "sparse_mask(): operands have ",
              "incompatible sizes; self has size ", self.sizes(),
              " but mask has size ", mask.sizes());
  at::Tensor made = at::empty({0}, mask.options().dtype(self.scalar_type()));
  return setParts(made, mask, mask._indices().clone(),
                  valuesAt(mask, self).values, mask.is_coalesced());
}

// [operators.sparse.mul] A product has the indices of one sparse factor, so its size does not depend on the data. Of two factors it is the one with more dimensions, or the first.
/// A dense tensor is returned as it is, because a lookup expands it.
at::Tensor broadcast(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return tensor.is_sparse() && tensor.sizes() != sizes
             ? at::_sparse_broadcast_to(tensor, sizes).coalesce()
             : tensor;
}

at::Tensor& sparseMulOut(const at::Tensor& self, const at::Tensor& other,
                         at::Tensor& out) {
  const auto sizes = at::infer_size(self.sizes(), other.sizes());
  const bool second =
      !self.is_sparse() || (other.is_sparse() && other.dim() > self.dim());
  const at::Tensor sparse = broadcast(second ? other : self, sizes);
  const at::Tensor& factor = second ? self : other;
  const auto [factors, missing] =
      factor.dim() == 0 ? Found{factor.to_dense(), {}}
                        : valuesAt(sparse, broadcast(factor, sizes));
  at::Tensor values = sparse._values().mul(factors);
  // What is absent is zero, even if the other number is infinite.
  if (missing.defined()) values.masked_fill_(missing, 0);
  return setParts(out, sparse, sparse._indices().clone(), values,
                  sparse.is_coalesced());
}

}  // namespace

// [operators.sparse.add] A sum has the indices of both, one after the other, and is coalesced only if both are.
at::Tensor& addSparseOut(const at::Tensor& self, const at::Tensor& other,
                         const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(other.is_sparse(), "add(sparse, dense) is not supported. Use ",
              "add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected 'self' and ",
              "'other' to have the same sizes, but ", self.sizes(),
              " != ", other.sizes(), "; sparse tensors do not broadcast.");
  const auto type = at::promoteTypes(self.scalar_type(), other.scalar_type());
  at::native::alpha_check(type, alpha);
  const at::Tensor terms = other._values().to(type).mul(alpha).to(type);
  if (!self.is_sparse()) {
    checkCast(type, out.scalar_type());
    at::native::resize_output(out, self.sizes());
    if (!out.is_same(self)) out.copy_(self);
    if (other.sparse_dim() == 0)
      return out.add_(terms.sum(0).to(out.scalar_type()));
    return out.index_put_(indexOf(other), terms.to(out.scalar_type()),
                          /*accumulate=*/true);
  }
  if (self._nnz() == 0)
    return setParts(out, other, other._indices().clone(), terms,
                    other.is_coalesced());
  if (other._nnz() == 0)
    return setParts(out, self, self._indices().clone(),
                    self._values().to(type, false, /*copy=*/true),
                    self.is_coalesced());
  TORCH_CHECK(at::sparse::is_same_density(self, other),
              "add: expected 'self' and 'other' to have same density, but "
              "'self' has ",
              self.sparse_dim(), " sparse dimensions while 'other' has ",
              other.sparse_dim(), " sparse dimensions");
  const bool coalesced = self.is_coalesced() && other.is_coalesced();
  setParts(out, self, at::cat({self._indices(), other._indices()}, 1),
           at::cat({self._values().to(type), terms}), /*coalesced=*/false);
  // Without a limit, a sum that a program adds to again and again would grow.
  if (!coalesced && out._nnz() <= out.numel()) return out;
  const at::Tensor sum = out.coalesce();
  return setParts(out, sum, sum._indices(), sum._values(), true);
}

// [operators.sparse.theirs.call] PyTorch's functions allocate on the current device, and a kernel that is not PyTorch's own gets no guard that sets it.
static std::optional<c10::Device> deviceAmong(
    c10::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue& each : arguments)
    if (each.isDevice()) return each.toDevice();
  const auto tensors = tensorsOf(arguments);
  return tensors.empty() ? std::nullopt : std::optional(tensors[0].device());
}

void callAt(c10::DispatchKey key, const c10::OperatorHandle& op,
            torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const c10::OptionalDeviceGuard guard(
      deviceAmong(torch::jit::last(*stack, count)));
  op.redispatchBoxed(c10::DispatchKeySet(key), stack);
}

// [operators.sparse.register] Four operators compute; PyTorch's functions make tensors, give their parts, and compose arithmetic of these four.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_coalesce", &coalesceSparse);
  m.impl("sparse_mask", &sparseMask);
  m.impl("mul.out", &sparseMulOut);
  m.impl("add.out", &addSparseOut);
  registerTheirs<c10::DispatchKey::SparseCPU>(
      m,
      "empty.memory_format _sparse_coo_tensor_with_dims "
      "_sparse_coo_tensor_with_dims_and_tensors clone empty_like copy_ "
      "copy_sparse_to_sparse_ zero_ zeros.out sparse_resize_ "
      "sparse_resize_and_clear_ resize_as_sparse_ sparse_dim dense_dim "
      "_nnz is_coalesced _coalesced_ _indices _values indices values");
  registerTheirs<c10::DispatchKey::SparseCPU>(
      m,
      "add.Tensor add_.Tensor sub.Tensor sub_.Tensor mul.Tensor "
      "mul_.Tensor div.Tensor div_.Tensor div.out abs abs.out sgn "
      "sgn.out neg neg.out conj_physical.out sum sum.dim_IntList "
      "permute _sparse_broadcast_to unsqueeze cat");
}

// [-]
}  // namespace openreg

namespace at::native {

// [operators.sparse.positions.stub] PyTorch asks for the positions too, to check that indices are sorted. Its headers do not declare the stub.
DECLARE_DISPATCH(Tensor (*)(const Tensor&, IntArrayRef), flatten_indices_stub)
REGISTER_PRIVATEUSE1_DISPATCH(flatten_indices_stub, &openreg::positions)

// [-]
}  // namespace at::native
