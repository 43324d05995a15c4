// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/examples/opencl/kernels/rows.h"
#include "sources.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mm_meta.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [opencl.matmul.parts] The fast kernel computes whole blocks, and the plain kernel the remaining columns and rows.
struct Product {
  int64_t rows, columns, depth;
  int64_t out[3], a[3], b[3], c[3];
  int64_t first_row = 0, first_column = 0;
};

void copyStrides(int64_t* to, const at::Tensor& tensor) {
  std::copy_n(tensor.strides().begin(), 3, to);
}

void launchPart(const char* kernel, const Product& product, int64_t items,
                const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                const at::Tensor& c, double beta, double alpha) {
  const char* compute = dtypeOf(out.scalar_type())->compute;
  Program program(source::gemm, kernel);
  Launch launch(program.compute(compute).function());
  launch.address(out).address(a).address(b).address(c);
  launch.number(product).number(compute, alpha, 0).number(compute, beta, 0);
  launch.run(out.device().index(), items, out.size(0), 16);
}

// [opencl.matmul.split] A product is cut into whole blocks, the columns to their right, and the rows below.
void multiplyIn(const at::Tensor& out, const at::Tensor& a,
                const at::Tensor& other, const at::Tensor& c, double beta,
                double alpha) {
  // The fast kernel reads vectors of columns.
  const at::Tensor b = other.stride(2) == 1 ? other : other.contiguous();
  Product all{out.size(1), out.size(2), a.size(2), {}, {}, {}, {}};
  copyStrides(all.out, out);
  copyStrides(all.a, a);
  copyStrides(all.b, b);
  copyStrides(all.c, c);
  Product blocks = all, right = all, below = all;
  blocks.rows = all.rows / 8 * 8;
  blocks.columns = all.columns / 32 * 32;
  if (blocks.columns == 0) blocks.rows = 0;
  right.rows = blocks.rows;
  right.first_column = blocks.columns;
  below.first_row = blocks.rows;
  launchPart("gemm_blocked", blocks, blocks.rows * blocks.columns / 256, out, a,
             b, c, beta, alpha);
  launchPart("gemm_plain", right,
             right.rows * (all.columns - right.first_column), out, a, b, c,
             beta, alpha);
  launchPart("gemm_plain", below, (all.rows - below.first_row) * all.columns,
             out, a, b, c, beta, alpha);
}

// [opencl.matmul.types] Halves are multiplied as floats, and rounded once at the end.
/// out = beta * c + alpha * a @ b, for tensors [batch, row, column] of one
/// floating dtype. `c` has the sizes of `out`, and may be `out`; it is not read
/// if `beta` is 0.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
              const at::Tensor& c, double beta, double alpha) {
  if (out.numel() == 0) return;
  if (a.numel() == 0) {
    // A sum of nothing is zero.
    beta == 0 ? out.zero_() : out.copy_(c).mul_(beta);
    return;
  }
  const at::ScalarType dtype = out.scalar_type();
  if (dtype == at::kFloat || dtype == at::kDouble)
    return multiplyIn(out, a, b, c, beta, alpha);
  const auto wide = [](const at::Tensor& tensor) {
    return tensor.to(at::kFloat);
  };
  const at::Tensor result =
      at::empty(out.sizes(), out.options().dtype(at::kFloat));
  multiplyIn(result, wide(a), wide(b), beta == 0 ? result : wide(c), beta,
             alpha);
  out.copy_(result);
}

// [opencl.matmul.operators] PyTorch's meta functions check the sizes; a single matrix becomes a batch of one.
bool canMultiply(const at::Tensor& out, const at::Tensor& a,
                 const at::Tensor& b) {
  return at::isFloatingType(out.scalar_type()) && knowsAll({out, a, b}) &&
         a.scalar_type() == out.scalar_type() &&
         b.scalar_type() == out.scalar_type();
}

at::Tensor& mmOut(const at::Tensor& self, const at::Tensor& other,
                  at::Tensor& out) {
  Structured<at::meta::structured_mm>(out, true).meta(self, other);
  if (!canMultiply(out, self, other))
    return OPENREG_FALLBACK(mm, out, self, other, out);
  const at::Tensor batch = out.unsqueeze(0);
  multiply(batch, self.unsqueeze(0), other.unsqueeze(0), batch, 0, 1);
  return out;
}

at::Tensor& bmmOut(const at::Tensor& self, const at::Tensor& other,
                   at::Tensor& out) {
  Structured<at::meta::structured_bmm>(out, true).meta(self, other);
  if (!canMultiply(out, self, other))
    return OPENREG_FALLBACK(bmm, out, self, other, out);
  multiply(out, self, other, out, 0, 1);
  return out;
}

// [opencl.matmul.sum] An addend is expanded, which costs only strides.
at::Tensor& addmmOut(const at::Tensor& self, const at::Tensor& a,
                     const at::Tensor& b, const at::Scalar& beta,
                     const at::Scalar& alpha, at::Tensor& out) {
  Structured<at::meta::structured_addmm>(out, true).meta(self, a, b, beta,
                                                         alpha);
  if (!canMultiply(out, a, b) || self.scalar_type() != out.scalar_type())
    return OPENREG_FALLBACK(addmm, out, self, a, b, beta, alpha, out);
  multiply(out.unsqueeze(0), a.unsqueeze(0), b.unsqueeze(0),
           self.expand(out.sizes()).unsqueeze(0), beta.toDouble(),
           alpha.toDouble());
  return out;
}

at::Tensor& baddbmmOut(const at::Tensor& self, const at::Tensor& a,
                       const at::Tensor& b, const at::Scalar& beta,
                       const at::Scalar& alpha, at::Tensor& out) {
  Structured<at::meta::structured_baddbmm>(out, true).meta(self, a, b, beta,
                                                           alpha);
  if (!canMultiply(out, a, b) || self.scalar_type() != out.scalar_type())
    return OPENREG_FALLBACK(baddbmm, out, self, a, b, beta, alpha, out);
  multiply(out, a, b, self.expand(out.sizes()), beta.toDouble(),
           alpha.toDouble());
  return out;
}

// [opencl.matmul.vector] A vector is treated as a matrix of one column.
at::Tensor& addmvOut(const at::Tensor& self, const at::Tensor& a,
                     const at::Tensor& x, const at::Scalar& beta,
                     const at::Scalar& alpha, at::Tensor& out) {
  Structured<at::meta::structured_addmv>(out, true).meta(self, a, x, beta,
                                                         alpha);
  if (!canMultiply(out, a, x) || self.scalar_type() != out.scalar_type())
    return OPENREG_FALLBACK(addmv, out, self, a, x, beta, alpha, out);
  const auto column = [](const at::Tensor& vector) {
    return vector.unsqueeze(0).unsqueeze(2);
  };
  multiply(column(out), a.unsqueeze(0), column(x),
           column(self.expand(out.sizes())), beta.toDouble(), alpha.toDouble());
  return out;
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
  if (!knowsAll({self, other}) || self.dim() != 1 ||
      self.scalar_type() != other.scalar_type() ||
      self.sizes() != other.sizes()) {
    return at::native::call_fallback_fn<&fallback, at::_ops::dot>::call(self,
                                                                        other);
  }
  return self.mul(other).sum(self.scalar_type());
}

// [opencl.matmul.register] PyTorch composes `matmul`, `mv` and `linear` of these operators.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mm.out", &mmOut);
  m.impl("bmm.out", &bmmOut);
  m.impl("addmm.out", &addmmOut);
  m.impl("baddbmm.out", &baddbmmOut);
  m.impl("addmv.out", &addmvOut);
  m.impl("dot", &dot);
}

// [-]
}  // namespace
}  // namespace openreg
