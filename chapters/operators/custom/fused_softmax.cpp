// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/checks/rehearsal.h"
#include "chapters/operators/custom/rows.h"

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

// [operators.fused.scale] One row scaled and masked: several elements at a time, if they lie side by side.
/// Returns the largest that takes part; minus infinity if none does.
template <class Number, class From, class Mask>
Number scaleAndMask(Number* to, From from, Mask takes_part, int64_t width,
                    Number scale) {
  constexpr auto kInfinity = std::numeric_limits<Number>::infinity();
  Number largest = -kInfinity;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < width; ++i) {
    // A branch on the mask would guess wrong, often; a minimum does not.
    const Number most = (2 * takes_part[i] - 1) * kInfinity;
    const Number scaled = std::min(most, scale * static_cast<Number>(from[i]));
    to[i] = scaled;
    largest = std::max(largest, scaled);
  }
  return largest;
}

template <class Number, class T>
Number scaleAndMask(Number* to, const Row<T>& from, const Row<bool>& takes_part,
                    int64_t width, Number scale) {
  if (!from.isDense() || !takes_part.isDense())
    return scaleAndMask<Number, const Row<T>&, const Row<bool>&>(
        to, from, takes_part, width, scale);
  // The compiler has no vectors of bools.
  const auto* bytes = reinterpret_cast<const uint8_t*>(takes_part.data());
  return scaleAndMask(to, from.data(), bytes, width, scale);
}

// [operators.fused.weights] From exponents to weights, and from weights to shares of their sum.
/// Exponents are kept above `kLeast`, and the weight of `kLeast` counts as
/// none: where the result is zero or no normal number, `exp_` takes several
/// times as long.
template <class Number>
const Number kNoWeight = 8 * std::numeric_limits<Number>::min();
template <class Number>
const Number kLeast = std::log(kNoWeight<Number> / 2);

template <class Number>
void shiftDown(Number* exponent, int64_t width, Number largest) {
  const Number least = kLeast<Number>;
  if (std::isinf(largest) && largest < 0) largest = 0;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i)
    exponent[i] = std::max(exponent[i] - largest, least);
}

/// A row of which the mask leaves nothing is all zeros.
template <class T, class Number>
void share(T* to, Number* weight, int64_t width) {
  const Number none = kNoWeight<Number>;
  Number sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < width; ++i)
    sum += weight[i] = weight[i] < none ? 0 : weight[i];
  const Number factor = sum == 0 ? 0 : 1 / sum;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) to[i] = weight[i] * factor;
}

// [operators.fused.forward] Three operators in one pass: no scaled and no masked tensor is ever stored.
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
      shiftDown(exponent, width,
                scaleAndMask(exponent, Row<T>(input, row), Row<bool>(mask, row),
                             width, static_cast<Number>(scale)));
    }
    auto* weight = block.exp_().data_ptr<Number>();
    T* to = out.data_ptr<T>() + begin * width;
    for (int64_t row = begin; row < end; ++row, weight += width, to += width)
      share(to, weight, width);
  });
}

// [operators.fused] On the host: what does not fit is refused before anything is enqueued.
at::Tensor scaleMaskSoftmax(const at::Tensor& input, const at::Tensor& mask,
                            double scale) {
  TORCH_CHECK_TYPE(input.is_floating_point(), "scale_mask_softmax takes no ",
                   input.scalar_type(), "; it takes floating types.");
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

// [operators.fused.register] The kernel here; Meta and autograd are in Python.
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("scale_mask_softmax", &scaleMaskSoftmax);
}

// [-]
}  // namespace
}  // namespace openreg
