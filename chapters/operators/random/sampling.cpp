// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/launch/operands.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/bernoulli_native.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/normal_native.h>
#include <ATen/ops/searchsorted.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.sampling] Random operators that are composed of samplers we already have.
using MaybeGenerator = std::optional<at::Generator>;

/// @throws c10::Error unless `out` and the others are on one device of ours.
template <class... Tensors>
void checkDevices(const char* name, const at::Tensor& out,
                  const Tensors&... others) {
  CommonDevice device(name);
  device.add(out, /*is_written=*/true);
  (device.add(others), ...);
  device.index();
}

/// For an `out=` tensor, before anything is drawn for it.
void checkCast(at::ScalarType result, const at::Tensor& out) {
  TORCH_CHECK(c10::canCast(result, out.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", out.scalar_type());
}

/// Copies `result` into the `out=` tensor of the user, after resizing it.
at::Tensor& copyInto(at::Tensor& out, const at::Tensor& result) {
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

// [operators.sampling.bernoulli] A uniform number below the probability is a one.
void bernoulliEach(const at::TensorBase& self, const at::TensorBase& p,
                   MaybeGenerator generator) {
  const at::Tensor out(self), given(p);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, given.scalar_type(),
                                  "bernoulli_", [] {});
  const auto expanded = at::expand_inplace(out, given);
  checkNumbers(
      "bernoulli_", given,
      [](const at::Tensor& p) { return p.ge(0).logical_and_(p.le(1)); },
      "bernoulli_ needs probabilities from 0 to 1.");
  at::Tensor drawn = at::empty(out.sizes(), out.options().dtype(at::kDouble));
  out.copy_(drawn.uniform_(0, 1, std::move(generator)).lt(*expanded));
}

at::Tensor& bernoulliFrom(at::Tensor& self, const at::Tensor& p,
                          MaybeGenerator generator) {
  checkDevices("bernoulli_", self, p);
  return at::native::bernoulli_(self, p, std::move(generator));
}

at::Tensor& bernoulliOut(const at::Tensor& self, MaybeGenerator generator,
                         at::Tensor& out) {
  checkDevices("bernoulli", out, self);
  return at::native::bernoulli_out(self, std::move(generator), out);
}

// [operators.sampling.normal] PyTorch's function would wait for the standard deviations; these check them on the device.
template <class Mean>
at::Tensor normal(Mean mean, const at::Tensor& std, MaybeGenerator generator) {
  TORCH_CHECK(!std.is_complex(),
              "normal expects standard deviation to be non-complex");
  checkNumbers(
      "normal", std, [](const at::Tensor& std) { return std.ge(0); },
      "normal needs std >= 0, for each element.");
  at::Tensor out;
  if constexpr (std::is_same_v<Mean, double>) {
    out = at::empty(std.sizes(), std.options());
  } else {
    out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  }
  return out.normal_(0, 1, std::move(generator)).mul_(std).add_(mean);
}

template <class Mean>
at::Tensor& normalOut(Mean mean, const at::Tensor& std,
                      MaybeGenerator generator, at::Tensor& out) {
  checkDevices("normal", out, std);
  if constexpr (std::is_same_v<Mean, double>) {
    checkCast(std.scalar_type(), out);
  } else {
    checkCast(mean.scalar_type(), out);
  }
  return copyInto(out, normal<Mean>(mean, std, std::move(generator)));
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
  checkDevices("multinomial", out, self);
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
  TORCH_CHECK(self.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape "
              "= ",
              self.sizes(), " noise.shape = ", noise.sizes());
  const double low = lower.toDouble(), high = upper.toDouble();
  if (!training) return at::leaky_relu(self, (low + high) / 2);
  noise.uniform_(low, high, std::move(generator));
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
  checkDevices("rrelu_with_noise", out, self, noise);
  checkCast(c10::promoteTypes(self.scalar_type(), noise.scalar_type()), out);
  return copyInto(
      out, rrelu(self, noise, lower, upper, training, std::move(generator)));
}

// [operators.sampling.register] PyTorch derives none of these forms, so each of them is registered.
using Each = const at::Tensor&;
using FromMeans = at::Tensor (*)(Each, double, MaybeGenerator);
using IntoFromMeans = at::Tensor& (*)(Each, double, MaybeGenerator,
                                      at::Tensor&);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("bernoulli_.Tensor", &bernoulliFrom);
  m.impl("bernoulli.out", &bernoulliOut);
  m.impl("normal.Tensor_float", FromMeans(&at::native::normal));
  m.impl("normal.Tensor_float_out", IntoFromMeans(&at::native::normal_out));
  m.impl("normal.float_Tensor", &normal<double>);
  m.impl("normal.float_Tensor_out", &normalOut<double>);
  m.impl("normal.Tensor_Tensor", &normal<Each>);
  m.impl("normal.Tensor_Tensor_out", &normalOut<Each>);
  m.impl("multinomial", &drawCategories);
  m.impl("multinomial.out", &drawCategoriesOut);
  m.impl("rrelu_with_noise", &rrelu);
  m.impl("rrelu_with_noise_", &rreluInPlace);
  m.impl("rrelu_with_noise.out", &rreluOut);
}

// [-]
}  // namespace
}  // namespace openreg

namespace at::native {

// [operators.sampling.stub] PyTorch's `bernoulli_` and `bernoulli.out` draw by the stub when probabilities are in a tensor.
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_tensor_stub, &openreg::bernoulliEach)

// [-]
}  // namespace at::native
