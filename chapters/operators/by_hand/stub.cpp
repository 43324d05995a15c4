// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/ldexp.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/special_i0e.h>
#include <torch/library.h>

#include <cmath>

namespace openreg {

// [operators.stub] PyTorch checks and allocates; a stub supplies only the inner loop.
void absKernel(at::TensorIteratorBase& iterator) {
  TORCH_CHECK_NOT_IMPLEMENTED(iterator.dtype() != at::kBool,
                              "\"abs_cpu\" not implemented for 'Bool'");
  launchRehearsed(
      "abs",
      [](at::Tensor out, const at::Tensor& self) { at::abs_out(out, self); },
      iterator.tensor(0), iterator.tensor(1));
}

void conjPhysicalKernel(at::TensorIteratorBase& iterator) {
  launchRehearsed(
      "conj_physical",
      [](at::Tensor out, const at::Tensor& self) {
        at::conj_physical_out(out, self);
      },
      iterator.tensor(0), iterator.tensor(1));
}

/// Without a stub, PyTorch multiplies by a power of 2, which may overflow where
/// the product does not.
void ldexpKernel(at::TensorIteratorBase& iterator) {
  launchRehearsed(
      "ldexp",
      [](at::Tensor out, const at::Tensor& self, const at::Tensor& exponent) {
        at::ldexp_out(out, self, exponent);
      },
      iterator.tensor(0), iterator.tensor(1), iterator.tensor(2));
}

// [operators.stub.kaiser] A quotient of Bessel functions overflows for a large beta, so we divide scaled ones.
/// `length` is one more than the user's if the window is to be periodic.
void kaiserWindowKernel(at::TensorIteratorBase& iterator, int64_t length,
                        double beta) {
  launchKernel(
      "kaiser_window",
      [length, beta = std::abs(beta)](at::Tensor out) {
        const double center = (length - 1) / 2.;
        const at::Tensor place = at::arange(length, at::kDouble);
        if (std::isinf(beta)) {
          out.copy_(place == center);
          return;
        }
        const at::Tensor from_center = place / center - 1;
        const at::Tensor root =
            (1 - from_center.square()).clamp_min_(0).sqrt_().mul_(beta);
        const at::Tensor scale =
            at::special_i0e(at::scalar_tensor(beta, at::kDouble));
        out.copy_(at::special_i0e(root) / scale * (root - beta).exp());
      },
      iterator.tensor(0));
}

// [-]
}  // namespace openreg

namespace at::native {

// [operators.stub.register] A stub is reached only if the operator that calls it is registered for our key.
/// PyTorch registers `conj_physical_` and `kaiser_window` for every backend,
/// but `abs.out` only for its own.
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &openreg::absKernel)
REGISTER_PRIVATEUSE1_DISPATCH(conj_physical_stub, &openreg::conjPhysicalKernel)
REGISTER_PRIVATEUSE1_DISPATCH(ldexp_stub, &openreg::ldexpKernel)
REGISTER_PRIVATEUSE1_DISPATCH(kaiser_window_stub, &openreg::kaiserWindowKernel)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("abs.out", &at::native::abs_out);
}

// [-]
}  // namespace at::native
