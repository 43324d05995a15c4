// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stdexcept>

namespace {

TEST(Kernel, a_kernel_that_throws_fails_the_device_until_it_is_reset) {
  Stream stream;
  std::atomic<bool> ran{false};
  openreg::launch(stream.handle, "divide",
                  [] { throw std::runtime_error("by zero"); });
  openreg::launch(stream.handle, "later", [&] { ran = true; });
  EXPECT_EQ(orStreamSynchronize(stream.handle), orErrorLaunchFailure);
  EXPECT_STREQ(orGetErrorDetail(), "openreg:0 stopped in divide: by zero");
  EXPECT_FALSE(ran);
  EXPECT_EQ(openreg::launch(stream.handle, "refused", [] {}),
            orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(openreg::launch(stream.handle, "accepted", [&] { ran = true; }),
            orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Kernel, a_kernel_that_refuses_its_arguments_leaves_the_device_working) {
  Stream stream;
  bool ran = false;
  for (const char* reason : {"3 is not even", "5 is not even"}) {
    openreg::launch(stream.handle, "halve",
                    [reason] { throw openreg::Refusal(reason); });
  }
  EXPECT_EQ(openreg::launch(stream.handle, "later", [&] { ran = true; }),
            orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orErrorKernelRefused);
  EXPECT_STREQ(orGetErrorDetail(),
               "openreg:0 could not run halve: 3 is not even");
  EXPECT_TRUE(ran);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
}

TEST(Kernel, a_reset_forgets_a_refusal) {
  Stream stream;
  openreg::launch(stream.handle, "halve",
                  [] { throw openreg::Refusal("3 is not even"); });
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
}

TEST(Kernel, captures_larger_than_a_command_are_carried_too) {
  Stream stream;
  std::array<int, 1000> large{};
  large[999] = 42;
  int seen = 0;
  openreg::launch(stream.handle, "large",
                  [large, &seen] { seen = large[999]; });
  orStreamSynchronize(stream.handle);
  EXPECT_EQ(seen, 42);
}

TEST(Kernel, a_kernel_can_be_launched_as_the_reference_does) {
  Stream stream;
  int seen = 0;
  orLaunchKernel(
      stream.handle, [](int* to, int value) { *to = value; }, &seen, 7);
  openreg::addTaskToStream(stream.handle, [&] { ++seen; });
  orStreamSynchronize(stream.handle);
  EXPECT_EQ(seen, 8);
}

}  // namespace
