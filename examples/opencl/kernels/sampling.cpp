// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/examples/opencl/kernels/rows.h"
#include "sources.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/random_native.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [opencl.sampling] The host reserves the offsets in program order, as in the chapters.
RandomState reserve(const at::Tensor& self,
                    const std::optional<at::Generator>& generator) {
  const at::Generator& chosen = generator && generator->defined()
                                    ? *generator
                                    : defaultGenerator(self.device().index());
  TORCH_CHECK_VALUE(chosen.device() == self.device(), "The generator is of ",
                    chosen.device(), ", the tensor is on ", self.device(),
                    "; they must be of one device.");
  at::assert_no_internal_overlap(self);
  return static_cast<Generator*>(chosen.unsafeGetGeneratorImpl())
      ->reserve(1)
      .state;
}

/// @throws c10::NotImplementedError for a dtype without a sampler.
void checkDtype(const char* name, const at::Tensor& self, bool whole) {
  const at::ScalarType dtype = self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      dtypeOf(dtype) && (whole || at::isFloatingType(dtype)), name,
      " has no numbers of type ", dtype, "; use a floating type.");
}

int digitsOf(at::ScalarType dtype) {
  return dtype == at::kDouble     ? 53
         : dtype == at::kFloat    ? 24
         : dtype == at::kBFloat16 ? 8
                                  : 11;
}

// [opencl.sampling.launch] All samplers use one kernel, each with its own expression.
struct Numbers {
  double x = 0, y = 0;
  uint64_t first = 0, range = 1;
};

void sample(const at::Tensor& self, const char* expression,
            const std::optional<at::Generator>& generator,
            const Numbers& numbers, bool has_bound = false) {
  const RandomState state = reserve(self, generator);
  const Target target(self, self.scalar_type());
  Program program(source::random, "sample");
  program.operand("OUT", self.scalar_type())
      .compute("double")
      .define("LOAD", "LOAD_OUT")
      .define("STORE", "STORE_OUT")
      .define("SAMPLE", expression)
      .define("DIGITS", std::to_string(digitsOf(self.scalar_type())));
  if (has_bound) program.define("BOUND");
  Launch(program.function())
      .address(target.tensor())
      .number(self.numel())
      .number(state.seed)
      .number(state.offset)
      .number(numbers.x)
      .number(numbers.y)
      .number(numbers.first)
      .number(numbers.range)
      .run(self.device().index(), self.numel());
  target.finish();
}

// [opencl.sampling.operators] Four distributions have samplers, and dropout is composed of one of them.
at::Tensor& uniform(at::Tensor& self, double from, double to,
                    std::optional<at::Generator> generator) {
  TORCH_CHECK_VALUE(from <= to, "uniform_ needs from <= to; from is ", from,
                    ", to is ", to, ".");
  checkDtype("uniform_", self, false);
  sample(self, "x + (y - x) * UNIT(bits, DIGITS)", generator, {from, to}, true);
  return self;
}

at::Tensor& normal(at::Tensor& self, double mean, double std,
                   std::optional<at::Generator> generator) {
  TORCH_CHECK_VALUE(std >= 0, "normal_ needs std >= 0; it is ", std, ".");
  checkDtype("normal_", self, false);
  sample(self, "normal(bits, x, y)", generator, {mean, std});
  return self;
}

at::Tensor& bernoulli(at::Tensor& self, double p,
                      std::optional<at::Generator> generator) {
  TORCH_CHECK_VALUE(0 <= p && p <= 1, "bernoulli_ needs 0 <= p <= 1; it is ", p,
                    ".");
  checkDtype("bernoulli_", self, true);
  sample(self, "UNIT(bits, 53) < x", generator, {p});
  return self;
}

// [opencl.sampling.whole] An integer is the random bits modulo the range, whose bias is negligible for the ranges that programs use.
/// PyTorch's `random_` checks the bounds, and calls this by a stub.
void drawIntegers(at::TensorIteratorBase& iterator, uint64_t range,
                  int64_t first, std::optional<at::Generator> generator) {
  const at::Tensor& self = iterator.output();
  checkDtype("random_", self, true);
  sample(self, "(long)(first + bits % range)", generator,
         {0, 0, static_cast<uint64_t>(first), range});
}

/// As declared twice: with `from` and `to`, and with `to`.
template <class... Bounds>
using Random = at::Tensor& (*)(at::Tensor&, Bounds...,
                               std::optional<at::Generator>);

std::tuple<at::Tensor, at::Tensor> nativeDropout(const at::Tensor& input,
                                                 double p,
                                                 std::optional<bool> train) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  if (!train.value_or(true) || p == 0) return {input.clone(), mask.fill_(true)};
  bernoulli(mask, 1 - p, std::nullopt);
  if (p == 1) return {at::empty_like(input).zero_(), mask};
  return {input.mul(mask).mul_(1 / (1 - p)), mask};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &uniform);
  m.impl("normal_", &normal);
  m.impl("bernoulli_.float", &bernoulli);
  m.impl("random_.from",
         Random<int64_t, std::optional<int64_t>>(&at::native::random_));
  m.impl("random_.to", Random<int64_t>(&at::native::random_));
  m.impl("native_dropout", &nativeDropout);
}

namespace stubs {
using namespace at::native;
REGISTER_PRIVATEUSE1_DISPATCH(random_from_to_stub, &drawIntegers)
}  // namespace stubs

// [-]
}  // namespace
}  // namespace openreg
