// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/random/random.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/searchsorted.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.sampling] Random operators that are composed of samplers we already have.
/// Copies `result` into the `out=` tensor of the user, after resizing it.
at::Tensor& copyInto(at::Tensor& out, const at::Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()),
              "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// [operators.sampling.check] A kernel that only checks values.
/// Enqueues a check, which refuses unless `holds` is true of every number.
template <class Holds>
void checkNumbers(const char* name, const at::Tensor& self, Holds holds,
                  const char* sentence) {
  const auto check = [holds, sentence](const at::Tensor& self) {
    TORCH_CHECK(holds(self).all().template item<bool>(), sentence);
  };
  if (self.is_cpu()) return check(self);
  launchKernel(
      name, [check](const at::Tensor&, const at::Tensor& self) { check(self); },
      /*written=*/at::Tensor(), self);
}

at::Tensor& bernoulliTensor(at::Tensor& self, const at::Tensor& p,
                            MaybeGenerator generator) {
  TORCH_CHECK(at::is_expandable_to(p.sizes(), self.sizes()),
              "Probabilities of ", p.sizes(), " do not fit a tensor of ",
              self.sizes(), "; they must be expandable to it.");
  math::checkFloating("bernoulli_", p);
  checkNumbers(
      "bernoulli_", p,
      [](const at::Tensor& p) { return p.ge(0).logical_and_(p.le(1)); },
      "bernoulli_ needs probabilities from 0 to 1.");
  at::Tensor drawn = at::empty(self.sizes(), self.options().dtype(at::kDouble));
  return self.copy_(drawn.uniform_(0, 1, std::move(generator)).lt(p));
}

at::Tensor& bernoulliOut(const at::Tensor& p, MaybeGenerator generator,
                         at::Tensor& out) {
  out.resize_(p.sizes());
  return bernoulliTensor(out, p, std::move(generator));
}

// [operators.sampling.normal] Each element may have its own mean, its own standard deviation, or both.
void checkDeviations(const at::Tensor& std) {
  TORCH_CHECK(!std.is_complex(),
              "normal expects standard deviation to be non-complex");
  checkNumbers(
      "normal", std, [](const at::Tensor& std) { return std.ge(0); },
      "normal needs std >= 0, for each element.");
}

/// One of `mean` and `std`, or both, are tensors.
template <class Mean, class Std>
at::Tensor normal(Mean mean, Std std, MaybeGenerator generator) {
  if constexpr (std::is_same_v<Std, double>) {
    TORCH_CHECK(std >= 0, "normal needs std >= 0; it is ", std, ".");
  } else {
    checkDeviations(std);
  }
  at::Tensor out;
  if constexpr (std::is_same_v<Std, double>) {
    out = at::empty(mean.sizes(), mean.options());
  } else if constexpr (std::is_same_v<Mean, double>) {
    out = at::empty(std.sizes(), std.options());
  } else {
    out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  }
  return out.normal_(0, 1, std::move(generator)).mul_(std).add_(mean);
}

template <class Mean, class Std>
at::Tensor& normalOut(Mean mean, Std std, MaybeGenerator generator,
                      at::Tensor& out) {
  return copyInto(out, normal<Mean, Std>(mean, std, std::move(generator)));
}

// [operators.sampling.weights] The host checks shapes at once; the device checks the weights later.
void checkWeights(const at::Tensor& self, int64_t count, bool replacement) {
  TORCH_CHECK((self.dim() == 1 || self.dim() == 2) && self.size(-1) > 0,
              "multinomial needs one or two dimensions with categories in the "
              "last; the sizes are ",
              self.sizes(), ".");
  TORCH_CHECK(
      at::isFloatingType(self.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ",
      self.scalar_type());
  TORCH_CHECK(count > 0, "multinomial needs num_samples > 0; it is ", count,
              ".");
  TORCH_CHECK(replacement || count <= self.size(-1),
              "multinomial without replacement can draw at most ",
              self.size(-1), " samples, not ", count, ".");
  checkNumbers(
      "multinomial", self,
      [](const at::Tensor& w) { return w.ge(0).logical_and_(w.isfinite()); },
      "multinomial needs finite weights >= 0.");
  checkNumbers(
      "multinomial", self,
      [](const at::Tensor& weights) { return weights.sum(-1).gt(0); },
      "multinomial needs weights with a sum > 0.");
}

// [operators.sampling.categories] Without replacement, categories race with exponential times; with replacement, uniform numbers are looked up in the cumulative sum.
at::Tensor drawCategories(const at::Tensor& self, int64_t count,
                          bool replacement, MaybeGenerator generator) {
  checkWeights(self, count, replacement);
  if (!replacement) {
    at::Tensor times = at::empty_like(self).exponential_(1, generator);
    return std::get<1>(at::div_out(times, self, times).topk(count));
  }
  at::Tensor sums = self.to(at::kDouble).cumsum(-1);
  auto sizes = self.sizes().vec();
  sizes.back() = count;
  at::Tensor places =
      at::empty(sizes, sums.options()).uniform_(0, 1, generator);
  places.mul_(sums.narrow(-1, self.size(-1) - 1, 1));
  return at::searchsorted(sums, places, /*out_int32=*/false, /*right=*/true);
}

at::Tensor& drawCategoriesOut(const at::Tensor& self, int64_t count,
                              bool replacement, MaybeGenerator generator,
                              at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", out.scalar_type());
  const at::Tensor drawn =
      drawCategories(self, count, replacement, std::move(generator));
  return out.resize_(drawn.sizes()).copy_(drawn);
}

// [operators.sampling.rrelu] Every negative element gets a random slope, which the backward pass needs again.
at::Tensor rrelu(const at::Tensor& self, at::Tensor& noise,
                 const at::Scalar& lower, const at::Scalar& upper,
                 bool training, MaybeGenerator generator) {
  const double low = lower.toDouble(), high = upper.toDouble();
  if (!training) return at::leaky_relu(self, (low + high) / 2);
  noise.resize_(self.sizes()).uniform_(low, high, std::move(generator));
  return self.mul(noise.masked_fill_(self.gt(0), 1));
}

at::Tensor& rreluInPlace(at::Tensor& self, at::Tensor& noise,
                         const at::Scalar& lower, const at::Scalar& upper,
                         bool training, MaybeGenerator generator) {
  return self.copy_(
      rrelu(self, noise, lower, upper, training, std::move(generator)));
}

at::Tensor& rreluOut(const at::Tensor& self, at::Tensor& noise,
                     const at::Scalar& lower, const at::Scalar& upper,
                     bool training, MaybeGenerator generator, at::Tensor& out) {
  return copyInto(
      out, rrelu(self, noise, lower, upper, training, std::move(generator)));
}

// [operators.sampling.register] PyTorch derives none of these forms, so each of them is registered.
using Each = const at::Tensor&;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("bernoulli_.Tensor", &bernoulliTensor);
  m.impl("bernoulli.out", &bernoulliOut);
  m.impl("normal.Tensor_float", &normal<Each, double>);
  m.impl("normal.Tensor_float_out", &normalOut<Each, double>);
  m.impl("normal.float_Tensor", &normal<double, Each>);
  m.impl("normal.float_Tensor_out", &normalOut<double, Each>);
  m.impl("normal.Tensor_Tensor", &normal<Each, Each>);
  m.impl("normal.Tensor_Tensor_out", &normalOut<Each, Each>);
  m.impl("multinomial", &drawCategories);
  m.impl("multinomial.out", &drawCategoriesOut);
  m.impl("rrelu_with_noise", &rrelu);
  m.impl("rrelu_with_noise_", &rreluInPlace);
  m.impl("rrelu_with_noise.out", &rreluOut);
}

// [-]
}  // namespace
}  // namespace openreg
