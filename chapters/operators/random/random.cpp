// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/operators/launch/operands.h"
#include "torch_openreg/common/math/interface/openreg_random.h"

#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/bernoulli_native.h>
#include <ATen/ops/cauchy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exponential_native.h>
#include <ATen/ops/geometric_native.h>
#include <ATen/ops/log_normal_native.h>
#include <ATen/ops/native_dropout_native.h>
#include <ATen/ops/normal_native.h>
#include <ATen/ops/random_native.h>
#include <ATen/ops/uniform_native.h>
#include <torch/library.h>

#include <limits>
#include <utility>

namespace openreg {
namespace {

// [operators.random.reserve] Offsets are reserved on the host, in program order.
using MaybeGenerator = std::optional<at::Generator>;

/// Reserves `count` offsets of `generator`, or of the device's default
/// generator if it is empty.
/// @throws c10::Error if the generator belongs to another device, or `self`
/// has several elements at one address.
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

/// Calls `sampler`, a function of `math`, which fills `self` on the current
/// stream of its device.
template <class Sampler, class... Parameters>
void fill(Sampler sampler, const MaybeGenerator& generator,
          const at::Tensor& self, const Parameters&... parameters) {
  const auto reserveFor = [&](uint64_t count) {
    return reserve(self, generator, count);
  };
  sampler({reserveFor, currentNativeStream(self.device().index())}, self,
          parameters...);
}

// [operators.random.stub] PyTorch's function checks the parameters, and then calls a stub of ours to draw.
/// The tensor to fill. A reference to it lives as long as the argument.
const at::Tensor& outputOf(at::TensorIteratorBase& iterator) {
  return iterator.output();
}
const at::Tensor& outputOf(const at::OptionalTensorRef& self) { return *self; }

/// The stub that calls `sampler`, a function of `math` with the parameters that
/// PyTorch hands to it.
template <auto sampler>
struct Stub;

template <class... Parameters,
          void (*sampler)(const math::Source&, const at::Tensor&,
                          Parameters...)>
struct Stub<sampler> {
  template <class Target>
  static void draw(Target& target, Parameters... parameters,
                   MaybeGenerator generator) {
    fill(sampler, generator, outputOf(target), parameters...);
  }
};

// [operators.random.unit] The bounds 0 and 1 need no check, so the most common call skips PyTorch's function and the iterator that it makes.
at::Tensor& uniform(at::Tensor& self, double from, double to,
                    MaybeGenerator generator) {
  if (from != 0 || to != 1 || self.is_complex() || self.numel() == 0)
    return at::native::uniform_(self, from, to, std::move(generator));
  fill(&math::uniform, generator, self, from, to);
  return self;
}

/// From 0 to what the dtype holds, for which there is a stub of its own too.
at::Tensor& random(at::Tensor& self, MaybeGenerator generator) {
  return at::native::random_(self, 0, std::nullopt, std::move(generator));
}

// [operators.random.new] An operator that returns a new tensor allocates it on the device of its parameters.
/// The operator of which each number of `self` is a parameter.
template <auto sampler>
at::Tensor drawLike(const at::Tensor& self, MaybeGenerator generator) {
  at::Tensor out = at::empty(self.sizes(), self.options());
  fill(sampler, generator, out, self);
  return out;
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& probability,
                    MaybeGenerator generator) {
  const c10::Device device(kDeviceType,
                           commonDevice("binomial", count, probability));
  at::Tensor out = at::empty(at::infer_size(count.sizes(), probability.sizes()),
                             count.options().device(device));
  fill(&math::binomial, generator, out, count, probability);
  return out;
}

at::Tensor& randperm(int64_t n, MaybeGenerator generator, at::Tensor& out) {
  fill(&math::permutation, generator, out, n);
  return out;
}

// [operators.random.dirichlet] Small concentrations give gamma numbers that only their logarithms can tell apart.
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
  const auto [least, greatest] = endsOfUnitInterval(self.scalar_type());
  // A gamma number of `a` is one of `a + 1`, times a uniform one to the power
  // of `1 / a`.
  const at::Tensor a = self.to(at::kDouble);
  at::Tensor log = drawLike<&math::standardGamma>(a + 1, generator).log_();
  log.sub_(at::empty_like(a).exponential_(1, std::move(generator)).div_(a));
  return log.softmax(-1).clamp_(least, greatest).to(self.scalar_type());
}

// [operators.random.register] PyTorch's own functions are registered for our key where they draw by a stub or by another operator.
/// The operator in place that has these parameters, of several with one name.
template <class... Parameters>
using InPlace = at::Tensor& (*)(at::Tensor&, Parameters..., MaybeGenerator);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &uniform);
  m.impl("normal_", &at::native::normal_);
  m.impl("random_", &random);
  m.impl("random_.to", InPlace<int64_t>(&at::native::random_));
  m.impl("random_.from",
         InPlace<int64_t, std::optional<int64_t>>(&at::native::random_));
  m.impl("bernoulli_.float", InPlace<double>(&at::native::bernoulli_));
  m.impl("exponential_", &at::native::exponential_);
  m.impl("cauchy_", &at::native::cauchy_);
  m.impl("log_normal_", &at::native::log_normal_);
  m.impl("geometric_", &at::native::geometric_);
  m.impl("native_dropout", &at::native::native_dropout_cpu);
  m.impl("poisson", &drawLike<&math::poisson>);
  m.impl("binomial", &binomial);
  m.impl("_standard_gamma", &drawLike<&math::standardGamma>);
  m.impl("_sample_dirichlet", &dirichlet);
  m.impl("randperm.generator_out", &randperm);
}

// [operators.random.stubs] Each stub is one function of the math library.
namespace stubs {
using namespace at::native;
REGISTER_PRIVATEUSE1_DISPATCH(uniform_stub, &Stub<&math::uniform>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(normal_stub, &Stub<&math::normal>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(random_from_to_stub, &Stub<&math::integers>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(random_full_64_bits_range_stub,
                              &Stub<&math::allIntegers>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_scalar_stub,
                              &Stub<&math::bernoulli>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(exponential_stub, &Stub<&math::exponential>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(cauchy_stub, &Stub<&math::cauchy>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(log_normal_stub, &Stub<&math::logNormal>::draw)
REGISTER_PRIVATEUSE1_DISPATCH(geometric_stub, &Stub<&math::geometric>::draw)
}  // namespace stubs

// [-]
}  // namespace
}  // namespace openreg
