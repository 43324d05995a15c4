// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/random/random.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/operators/launch/operands.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <limits>
#include <utility>

namespace openreg {

// [operators.random.reserve] Offsets are reserved on the host, in program order.
math::RandomNumbers reserve(const at::Tensor& self,
                            const MaybeGenerator& generator, uint64_t count) {
  const at::Generator& chosen = generator && generator->defined()
                                    ? *generator
                                    : defaultGenerator(self.device().index());
  TORCH_CHECK(chosen.device() == self.device(), "The generator is of ",
              chosen.device(), ", the tensor is on ", self.device(),
              "; they must be on one device.");
  at::assert_no_internal_overlap(self);
  const auto [state, number, base] =
      static_cast<Generator*>(chosen.unsafeGetGeneratorImpl())->reserve(count);
  return {state.seed, state.offset, reinterpret_cast<const uint64_t*>(base)};
}

at::Tensor& fill(at::Tensor& self, const MaybeGenerator& generator,
                 const math::Draw& draw) {
  draw.enqueue(reserve(self, generator, draw.offsets),
               currentNativeStream(self.device().index()));
  return self;
}

namespace {

// [operators.random.in-place] The library checks the parameters, and `fill` does the rest.
/// The operator whose phase one is `make`, a function of `math`.
template <auto make, class... Parameters>
at::Tensor& inPlace(at::Tensor& self, Parameters... parameters,
                    MaybeGenerator generator) {
  return fill(self, generator, make(self, parameters...));
}

at::Tensor& randomTo(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return fill(self, generator, math::integers(self, 0, to));
}

// [operators.random.new] An operator that returns a new tensor allocates it on the device of its parameters.
at::Tensor poisson(const at::Tensor& self, MaybeGenerator generator) {
  at::Tensor out = at::empty(self.sizes(), self.options());
  return fill(out, generator, math::poisson(out, self));
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& probability,
                    MaybeGenerator generator) {
  const c10::Device device(kDeviceType,
                           commonDevice("binomial", count, probability));
  at::Tensor out = at::empty(at::infer_size(count.sizes(), probability.sizes()),
                             count.options().device(device));
  return fill(out, generator, math::binomial(out, count, probability));
}

at::Tensor standardGamma(const at::Tensor& self, MaybeGenerator generator) {
  at::Tensor out = at::empty(self.sizes(), self.options());
  return fill(out, generator, math::standardGamma(out, self));
}

at::Tensor& randperm(int64_t n, MaybeGenerator generator, at::Tensor& out) {
  return fill(out, generator, math::permutation(out, n));
}

// [operators.random.dirichlet] Small concentrations give gamma numbers that only double precision can tell apart.
/// The least and the greatest number between 0 and 1, both exclusive.
std::pair<double, double> endsOfUnitInterval(at::ScalarType type) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, type, "_sample_dirichlet", [] {
        using Limits = std::numeric_limits<scalar_t>;
        return std::pair<double, double>(Limits::min(),
                                         1 - double{Limits::epsilon()} / 2);
      });
}

at::Tensor dirichlet(const at::Tensor& self, MaybeGenerator generator) {
  math::checkFloating("_sample_dirichlet", self);
  const auto [least, greatest] = endsOfUnitInterval(self.scalar_type());
  at::Tensor gamma = standardGamma(self.to(at::kDouble), std::move(generator));
  return gamma.div_(gamma.sum(-1, true))
      .clamp_(least, greatest)
      .to(self.scalar_type());
}

// [operators.random.dropout] The mask comes from the device's generator, not from the CPU's.
std::tuple<at::Tensor, at::Tensor> nativeDropout(const at::Tensor& input,
                                                 double p,
                                                 std::optional<bool> train) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  TORCH_CHECK(0 <= p && p <= 1, "dropout needs 0 <= p <= 1; it is ", p, ".");
  if (!train.value_or(true) || p == 0) return {input.clone(), mask.fill_(true)};
  fill(mask, std::nullopt, math::bernoulli(mask, 1 - p));
  if (p == 1) return {at::empty_like(input).zero_(), mask};
  return {input.mul(mask).mul_(1 / (1 - p)), mask};
}

// [operators.random.register] The fallback would draw from the CPU's generator; these kernels draw from ours.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &inPlace<&math::uniform, double, double>);
  m.impl("normal_", &inPlace<&math::normal, double, double>);
  m.impl("random_", &inPlace<&math::anyIntegers>);
  m.impl("random_.to", &randomTo);
  m.impl("random_.from",
         &inPlace<&math::integers, int64_t, std::optional<int64_t>>);
  m.impl("bernoulli_.float", &inPlace<&math::bernoulli, double>);
  m.impl("exponential_", &inPlace<&math::exponential, double>);
  m.impl("cauchy_", &inPlace<&math::cauchy, double, double>);
  m.impl("log_normal_", &inPlace<&math::logNormal, double, double>);
  m.impl("geometric_", &inPlace<&math::geometric, double>);
  m.impl("poisson", &poisson);
  m.impl("binomial", &binomial);
  m.impl("_standard_gamma", &standardGamma);
  m.impl("_sample_dirichlet", &dirichlet);
  m.impl("randperm.generator_out", &randperm);
  m.impl("native_dropout", &nativeDropout);
}

// [-]
}  // namespace
}  // namespace openreg
