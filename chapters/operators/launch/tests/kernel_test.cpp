// SPDX-License-Identifier: BSD-3-Clause
// What the headers offer to kernels of others, where no operator of ours leads.
#include "torch_openreg/chapters/device/tests/words_of.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/by_hand/structured.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/view_as_complex.h>
#include <gtest/gtest.h>

namespace {

using Mm = openreg::Structured<at::meta::structured_mm>;

at::Tensor ours(at::IntArrayRef sizes) {
  return at::empty(sizes, openreg::kDeviceType);
}

TEST(Structured, an_output_is_made_or_resized_and_in_place_must_fit) {
  const at::Tensor a = ours({2, 3}), b = ours({3, 4});
  Mm made;
  made.meta(a, b);
  EXPECT_EQ(made.output().sizes(), at::IntArrayRef({2, 4}));
  EXPECT_EQ(made.output().device(), a.device());
  Mm resized(ours({0}), /*may_resize=*/true);
  resized.meta(a, b);
  EXPECT_EQ(resized.output().sizes(), at::IntArrayRef({2, 4}));
  EXPECT_EQ(wordsOf([&] {
              Mm(ours({2, 2}), /*may_resize=*/false).meta(a, b);
            }),
            "An output of [2, 2] cannot hold a result of [2, 4] in place.");
}

TEST(Launcher, a_small_kernel_runs_on_one_thread) {
  const auto threads = [](int64_t first, int64_t second) {
    int used = 0;
    const auto count = [&](at::Tensor, const at::Tensor&) {
      used = at::get_num_threads();
    };
    openreg::launchKernel("count", count, ours({first}), ours({second}));
    orDeviceSynchronize();
    return used;
  };
  int all = 0;
  const auto count = [&] { all = at::get_num_threads(); };
  openreg::check(openreg::launch(nullptr, "count", count));
  orDeviceSynchronize();
  EXPECT_EQ(threads(1, 32767), 1);
  EXPECT_EQ(threads(1, 32768), all);
  EXPECT_EQ(threads(1, 1), 1);
}

TEST(View, a_kernel_takes_one_number_from_the_host) {
  openreg::View number(at::ones({1}));
  EXPECT_EQ(wordsOf([] { openreg::View view(at::ones({2})); }),
            "A kernel takes one number from the host, not a tensor of 2 "
            "elements.");
}

TEST(View, a_result_comes_home_however_its_kernel_has_turned_it) {
  at::Tensor home = at::arange(8.).view({2, 4});
  const auto comes_home = [&](const at::Tensor& result) {
    const at::Tensor expected = result.clone();
    openreg::writeBack(home, result);
    return home.equal(expected);
  };
  EXPECT_TRUE(comes_home(home));
  EXPECT_TRUE(comes_home(home.as_strided({2, 4}, {1, 2})));
  EXPECT_TRUE(comes_home(at::arange(8.).view({2, 4}).neg()));
  home = at::view_as_complex(home.view({4, 2}));
  EXPECT_TRUE(comes_home(home.conj()));
  EXPECT_TRUE(comes_home(home._neg_view()));
}

TEST(Launcher, a_kernel_writes_its_first_tensor_and_that_is_ours) {
  const auto fill = [](at::Tensor out, const at::Tensor& value) {
    out.fill_(value);
  };
  const at::Tensor host = at::ones({}), device = ours({});
  openreg::launchKernel("mine", fill, device, host);
  EXPECT_EQ(device.item<float>(), 1);
  EXPECT_EQ(wordsOf([&] { openreg::launchKernel("mine", fill, host, device); }),
            "mine on an openreg device cannot write to a tensor on cpu; move "
            "that tensor with .to().");
  EXPECT_EQ(wordsOf([&] { openreg::launchKernel("mine", fill, host, host); }),
            "mine needs at least one tensor on an openreg device.");
}

}  // namespace
