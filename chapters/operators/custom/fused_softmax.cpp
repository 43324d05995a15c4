// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/custom/rows.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace openreg {
namespace {

// [operators.fused.scale] A row is scaled and masked several elements at a time if it is contiguous.
/// Returns the largest unmasked element; minus infinity if all are masked.
template <class Number, class From, class Mask>
Number scaleAndMask(Number* to, From from, Mask mask, int64_t width,
                    Number scale) {
  constexpr auto kInfinity = std::numeric_limits<Number>::infinity();
  Number largest = -kInfinity;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < width; ++i) {
    // A branch on the mask would often be mispredicted; a minimum is not.
    const Number limit = (2 * mask[i] - 1) * kInfinity;
    const Number scaled = std::min(limit, scale * static_cast<Number>(from[i]));
    to[i] = scaled;
    largest = std::max(largest, scaled);
  }
  return largest;
}

template <class Number, class T>
Number scaleAndMask(Number* to, const Row<T>& from, const Row<bool>& mask,
                    int64_t width, Number scale) {
  if (!from.isDense() || !mask.isDense())
    return scaleAndMask<Number, const Row<T>&, const Row<bool>&>(to, from, mask,
                                                                 width, scale);
  // The compiler does not vectorize loads of bool.
  const auto* bytes = reinterpret_cast<const uint8_t*>(mask.data());
  return scaleAndMask(to, from.data(), bytes, width, scale);
}

// [operators.fused.weights] Exponents are shifted down and clamped, and weights are divided by their sum.
/// `exp_` takes several times as long where its result is zero or denormal. So
/// exponents are clamped at `kSmallestExponent`, and weights below
/// `kSmallestWeight` are set to zero.
template <class Number>
const Number kSmallestWeight = 8 * std::numeric_limits<Number>::min();
template <class Number>
const Number kSmallestExponent = std::log(kSmallestWeight<Number> / 2);

template <class Number>
void subtractLargest(Number* exponent, int64_t width, Number largest) {
  const Number least = kSmallestExponent<Number>;
  if (std::isinf(largest) && largest < 0) largest = 0;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i)
    exponent[i] = std::max(exponent[i] - largest, least);
}

/// A row that is masked completely becomes zeros.
template <class T, class Number>
void normalize(T* to, Number* weight, int64_t width) {
  const Number none = kSmallestWeight<Number>;
  Number sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < width; ++i)
    sum += weight[i] = weight[i] < none ? 0 : weight[i];
  const Number factor = sum == 0 ? 0 : 1 / sum;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) to[i] = weight[i] * factor;
}

// [operators.fused.forward] One pass does the work of three operators; no scaled or masked tensor is stored.
template <class T>
void softmaxInto(at::Tensor& out, const at::Tensor& input,
                 const at::Tensor& mask, double scale) {
  using Number = at::opmath_type<T>;
  const int64_t width = input.size(-1);
  forEachBlock(input, [&](int64_t begin, int64_t end) {
    at::Tensor block = at::empty({end - begin, width},
                                 c10::CppTypeToScalarType<Number>::value);
    auto* exponent = block.data_ptr<Number>();
    for (int64_t row = begin; row < end; ++row, exponent += width) {
      subtractLargest(
          exponent, width,
          scaleAndMask(exponent, Row<T>(input, row), Row<bool>(mask, row),
                       width, static_cast<Number>(scale)));
    }
    auto* weight = block.exp_().data_ptr<Number>();
    T* to = out.data_ptr<T>() + begin * width;
    for (int64_t row = begin; row < end; ++row, weight += width, to += width)
      normalize(to, weight, width);
  });
}

// [operators.fused] The host refuses arguments that do not fit before it enqueues anything.
at::Tensor scaleMaskSoftmax(const at::Tensor& input, const at::Tensor& mask,
                            double scale) {
  TORCH_CHECK_TYPE(input.is_floating_point(),
                   "scale_mask_softmax does not take ", input.scalar_type(),
                   "; it takes floating types.");
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "The mask of scale_mask_softmax is of type ",
                   mask.scalar_type(),
                   "; it must be Bool, true where an element takes part.");
  TORCH_CHECK_VALUE(input.dim() > 0,
                    "scale_mask_softmax needs an input with rows; it has no "
                    "dimension.");
  TORCH_CHECK_VALUE(at::is_expandable_to(mask.sizes(), input.sizes()),
                    "A mask of ", mask.sizes(), " does not fit an input of ",
                    input.sizes(), "; it must be expandable to it.");
  at::Tensor out = at::empty(input.sizes(), input.options());
  launchRehearsed(
      "scale_mask_softmax",
      [scale](at::Tensor out, const at::Tensor& input, const at::Tensor& mask) {
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::kHalf, at::kBFloat16, input.scalar_type(), "softmax",
            [&] { softmaxInto<scalar_t>(out, input, mask, scale); });
      },
      out, input, mask.expand(input.sizes()));
  return out;
}

// [operators.fused.register] The kernel is here; those for Meta and autograd are in Python.
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("scale_mask_softmax", &scaleMaskSoftmax);
}

// [-]
}  // namespace
}  // namespace openreg
