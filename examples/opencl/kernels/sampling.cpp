// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/examples/opencl/kernels/rows.h"
#include "sources.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <limits>

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
at::Tensor& randomFromTo(at::Tensor& self, int64_t from,
                         std::optional<int64_t> to,
                         std::optional<at::Generator> generator) {
  checkDtype("random_", self, true);
  const int64_t end = to.value_or(std::numeric_limits<int64_t>::max());
  TORCH_CHECK_VALUE(from < end, "random_ needs from < to; from is ", from,
                    ", to is ", end, ".");
  const auto first = static_cast<uint64_t>(from);
  sample(self, "(long)(first + bits % range)", generator,
         {0, 0, first, static_cast<uint64_t>(end) - first});
  return self;
}

at::Tensor& randomTo(at::Tensor& self, int64_t to,
                     std::optional<at::Generator> generator) {
  return randomFromTo(self, 0, to, generator);
}

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
  m.impl("random_.from", &randomFromTo);
  m.impl("random_.to", &randomTo);
  m.impl("native_dropout", &nativeDropout);
}

// [-]
}  // namespace
}  // namespace openreg
