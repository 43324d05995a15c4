// SPDX-License-Identifier: BSD-3-Clause
// What the backend relies on, of whatever math library: nothing here knows how
// ours works inside.
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/math/interface/openreg_math.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace {

using openreg::math::Plan;
using openreg::math::Primitive;
using openreg::math::primitives;
using Stack = torch::jit::Stack;

const at::Device kDevice(at::kPrivateUse1, 0);

at::Tensor floats(std::vector<float> numbers) {
  return at::tensor(numbers).to(kDevice);
}

std::vector<float> numbersOf(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().to(at::kFloat).contiguous();
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
}

const Primitive& named(const std::string& name, const std::string& overload) {
  const auto& all = primitives();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) {
        return each.op.operator_name() ==
               c10::OperatorName("aten::" + name, overload);
      });
  TORCH_CHECK(found != all.end(), "there is no ", name);
  return *found;
}

orStream_t stream() { return openreg::currentNativeStream(0); }

/// What a backend does between the phases.
Stack allocate(const Plan& plan) {
  Stack outputs;
  for (const c10::IValue& result : plan.results()) {
    const at::Tensor& like = result.toTensor();
    outputs.push_back(like.is_privateuseone()
                          ? like
                          : at::empty_strided(like.sizes(), like.strides(),
                                              like.options().device(kDevice)));
  }
  return outputs;
}

Stack computed(const Primitive& primitive, Stack arguments) {
  Plan plan(primitive, std::move(arguments), stream());
  Stack outputs = allocate(plan);
  plan.enqueue(outputs, stream());
  return outputs;
}

std::string refusalOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(MathLibrary, the_first_phase_says_sizes_strides_and_dtypes) {
  const Plan plan(
      named("mul", "Tensor"),
      {floats({1, 2, 3}).view({3, 1}), at::ones({2}).to(kDevice, at::kInt)},
      stream());
  ASSERT_EQ(plan.results().size(), 1);
  const at::Tensor& result = plan.results()[0].toTensor();
  EXPECT_EQ(result.sizes(), at::IntArrayRef({3, 2}));
  EXPECT_EQ(result.scalar_type(), at::kFloat);
  EXPECT_FALSE(result.is_privateuseone())
      << "it has no memory of the device yet";
}

TEST(MathLibrary, the_first_phase_enqueues_nothing) {
  const at::Tensor x = floats({1});
  openreg::check(orDeviceSynchronize());
  const Plan plan(named("exp", ""), {x}, stream());
  const Plan in_place(named("exp_", ""), {x}, stream());
  EXPECT_EQ(orStreamQuery(stream()), orSuccess);
}

TEST(MathLibrary, the_second_phase_writes_to_the_memory_that_it_is_given) {
  Plan plan(named("exp", ""), {floats({0, 0})}, stream());
  const at::Tensor room = at::zeros({4}, kDevice);
  const at::Tensor second = room.slice(0, 0, 4, 2);
  plan.enqueue({second}, stream());
  EXPECT_EQ(numbersOf(room), (std::vector<float>{1, 0, 1, 0}));
}

TEST(MathLibrary, what_the_host_can_refuse_is_refused_in_the_first_phase) {
  const at::Tensor a = at::ones({2, 3}, kDevice), cpu = at::ones({2, 3});
  const std::string words = refusalOf([&] { at::mm(cpu, cpu); });
  EXPECT_NE(words.find("cannot be multiplied"), words.npos);
  EXPECT_EQ(refusalOf([&] { Plan(named("mm", ""), {a, a}, stream()); }), words);
  EXPECT_NE(refusalOf([&] {
              Plan(named("exp_", ""), {floats({1}).to(at::kLong)}, stream());
            }),
            "");
}

TEST(MathLibrary, a_tensor_that_is_passed_is_the_result) {
  const at::Tensor x = floats({1, 4});
  EXPECT_TRUE(computed(named("sqrt_", ""), {x})[0].toTensor().is_same(x));
  EXPECT_EQ(numbersOf(x), (std::vector<float>{1, 2}));
  const at::Tensor out = at::empty({0}, kDevice);
  EXPECT_TRUE(
      computed(named("sqrt", "out"), {x, out})[0].toTensor().is_same(out));
  EXPECT_EQ(out.sizes(), at::IntArrayRef({2})) << "an output gets its size";
}

TEST(MathLibrary,
     inputs_in_the_memory_of_an_output_that_grows_are_read_before) {
  const at::Tensor x = floats({1, 2, 3});
  const at::Tensor out = x.slice(0, 0, 1);
  computed(named("cumsum", "out"), {x, 0, c10::IValue(), out});
  EXPECT_EQ(numbersOf(out), (std::vector<float>{1, 3, 6}));
}

TEST(MathLibrary,
     sizes_that_depend_on_the_data_are_known_after_the_first_phase) {
  Plan plan(named("nonzero", ""), {floats({0, 5, 0, 7})}, stream());
  EXPECT_EQ(plan.results()[0].toTensor().sizes(), at::IntArrayRef({2, 1}));
  const Stack outputs = allocate(plan);
  plan.enqueue(outputs, stream());
  EXPECT_EQ(numbersOf(outputs[0].toTensor()), (std::vector<float>{1, 3}));
}

TEST(MathLibrary, a_numerical_failure_is_raised_by_the_second_phase_if_wanted) {
  const Primitive& inverse = named("linalg_inv_ex", "");
  const at::Tensor singular = at::zeros({2, 2}, kDevice);
  EXPECT_NE(refusalOf([&] {
              computed(inverse, {singular, true});
            }).find("singular"),
            std::string::npos);
  const Stack results = computed(inverse, {singular, false});
  EXPECT_EQ(numbersOf(results[1].toTensor()), std::vector<float>{1});
}

}  // namespace
