// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/opencl/kernels/program.h"

namespace openreg {

// [opencl.rows] A dense tensor is cut into runs along one dimension.
/// A dense tensor as [outer, n, inner], of which `n` is dimension `dim`.
struct Rows {
  Rows(const at::Tensor& tensor, int64_t dim);
  Rows(int64_t outer, int64_t n, int64_t inner)
      : outer(outer), n(n), inner(inner) {}
  int64_t count() const { return outer * inner; }

  int64_t outer = 1, n = 1, inner = 1;
};

/// Where a kernel may write `out`: `out` itself if it is dense and has the
/// dtype `dtype`, otherwise a new tensor. `finish` copies that to `out`.
class Target {
 public:
  Target(const at::Tensor& out, at::ScalarType dtype);
  const at::Tensor& tensor() const { return tensor_; }
  void finish() const;

 private:
  at::Tensor out_, tensor_;
};

/// The boxed call of the fallback, for kernels that do not know a dtype.
#define OPENREG_FALLBACK(op, overload, ...)                                 \
  at::native::call_fallback_fn<&fallback, at::_ops::op##_##overload>::call( \
      __VA_ARGS__)

// [-]
}  // namespace openreg
