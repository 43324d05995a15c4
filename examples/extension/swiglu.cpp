// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

namespace {

// On the device: silu(gate) * up, in one pass.
template <class T>
void swigluInto(at::Tensor& out, const at::Tensor& gate, const at::Tensor& up) {
  const at::Tensor gates = gate.contiguous(), ups = up.contiguous();
  const T* g = gates.const_data_ptr<T>();
  const T* u = ups.const_data_ptr<T>();
  T* to = out.data_ptr<T>();
  at::parallel_for(0, out.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const at::opmath_type<T> x = g[i], y = u[i];
      to[i] = x / (1 + std::exp(-x)) * y;
    }
  });
}

// On the host: what fits, and how large the output is.
at::Tensor swigluMeta(const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK_VALUE(
      gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
      "swiglu needs two tensors of one size and type; they are of ",
      gate.sizes(), " ", gate.scalar_type(), " and ", up.sizes(), " ",
      up.scalar_type(), ".");
  const auto type = gate.scalar_type();
  TORCH_CHECK_TYPE(type == at::kFloat || type == at::kDouble ||
                       type == at::kHalf || type == at::kBFloat16,
                   "swiglu computes reals of 16, 32 and 64 bits, not ", type,
                   ".");
  return at::empty(gate.sizes(), gate.options());
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  at::Tensor out = swigluMeta(gate, up);
  openreg::launchKernel(
      "swiglu",
      [](at::Tensor out, const at::Tensor& gate, const at::Tensor& up) {
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::kHalf, at::kBFloat16, gate.scalar_type(), "swiglu",
            [&] { swigluInto<scalar_t>(out, gate, up); });
      },
      out, gate, up);
  return out;
}

}  // namespace

TORCH_LIBRARY(acme, m) { m.def("swiglu(Tensor gate, Tensor up) -> Tensor"); }

TORCH_LIBRARY_IMPL(acme, PrivateUse1, m) { m.impl("swiglu", &swiglu); }

TORCH_LIBRARY_IMPL(acme, Meta, m) { m.impl("swiglu", &swigluMeta); }
