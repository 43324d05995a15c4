// SPDX-License-Identifier: BSD-3-Clause
// The host has no memory for the driver: a call is refused or does all that it
// should, and the device needs none to run what was enqueued.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/scarce_new.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace {

struct Tally {
  int accepted = 0, unexpected = 0;
  std::atomic<int> ran{0};

  bool accepts(orError_t error) {
    if (error && error != orErrorMemoryAllocation) ++unexpected;
    return !error;
  }
};

// Two streams that wait for each other, are filled faster than they run, and
// are destroyed before they are empty. Allocates nothing itself.
void work(Tally& tally, int launches, void* block, void* pinned, size_t size) {
  orStream_t streams[2] = {};
  orEvent_t event = nullptr;
  for (auto& stream : streams) tally.accepts(orStreamCreate(&stream));
  tally.accepts(orEventCreate(&event));
  for (int i = 0; i < launches; ++i) {
    for (orStream_t stream : streams) {
      if (!stream) continue;
      const auto run = [&tally, i] {
        if (i == 0) usleep(1000);
        ++tally.ran;
      };
      tally.accepted += tally.accepts(openreg::launch(stream, "count", run));
    }
    if (i < 4 && streams[0] && streams[1] && event) {
      tally.accepts(orEventRecord(event, streams[i % 2]));
      tally.accepts(orStreamWaitEvent(streams[1 - i % 2], event, 0));
    }
  }
  if (streams[0]) {
    tally.accepts(
        orMemcpyAsync(block, pinned, size, orMemcpyHostToDevice, streams[0]));
  }
  for (orStream_t stream : streams) {
    if (stream) tally.accepts(orStreamDestroy(stream));
  }
  if (event) tally.accepts(orEventDestroy(event));
  tally.accepts(orDeviceSynchronize());
}

TEST(HostMemory, its_end_loses_no_command) {
  constexpr size_t kSize = size_t{3} << 20;
  void *block, *pinned;
  ASSERT_EQ(orMalloc(&block, kSize), orSuccess);
  ASSERT_EQ(orMallocHost(&pinned, kSize), orSuccess);
  ASSERT_EQ(enqueue(nullptr, [] {}), orSuccess);
  for (bool once : {true, false}) {
    for (int number = 0; number < 500; ++number) {
      Tally tally;
      scarce::fails_once = once;
      scarce::failed = false;
      scarce::left = number;
      // More commands than any stream had before, so that some are new.
      work(tally, 4 * (number + 1), block, pinned, kSize);
      scarce::left = scarce::kAll;
      ASSERT_EQ(orDeviceSynchronize(), orSuccess) << orGetErrorDetail();
      ASSERT_EQ(tally.ran, tally.accepted) << "allocation " << number;
      ASSERT_EQ(tally.unexpected, 0) << "allocation " << number;
      if (!scarce::failed) break;
    }
    EXPECT_FALSE(scarce::failed);
  }
  EXPECT_EQ(orFree(block), orSuccess);
  EXPECT_EQ(orFreeHost(pinned), orSuccess);
}

TEST(HostMemory, its_end_leaves_the_error_of_a_kernel) {
  std::atomic<bool> recorded{false};
  Event event;
  ASSERT_EQ(enqueue(nullptr,
                    [&] {
                      for (int ms = 0; ms < 1000 && !recorded; ++ms) {
                        usleep(1000);
                      }
                      scarce::left = 0;
                      throw std::bad_alloc();
                    }),
            orSuccess);
  ASSERT_EQ(orEventRecord(event, nullptr), orSuccess);
  recorded = true;
  orError_t error;
  while ((error = orEventQuery(event)) == orErrorNotReady) usleep(100);
  scarce::left = scarce::kAll;
  EXPECT_EQ(error, orErrorLaunchFailure);
  EXPECT_STREQ(orGetErrorDetail(), "A kernel threw.");
  EXPECT_EQ(orSetDevice(1), orSuccess);
  EXPECT_EQ(orStreamWaitEvent(nullptr, event, 0), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orErrorKernelRefused);
  EXPECT_STREQ(orGetErrorDetail(), "A device failed.");
  EXPECT_EQ(orSetDevice(0), orSuccess);
  EXPECT_EQ(orDeviceReset(), orSuccess);
}

TEST(HostMemory, DISABLED_its_end_leaves_a_guarded_block_to_be_freed) {
  scarce::fails_once = true;
  int number = 0;
  for (orError_t error = orErrorMemoryAllocation; error; ++number) {
    void* block;
    ASSERT_EQ(orMalloc(&block, 4096), orSuccess);
    scarce::left = number;
    error = orRetireBlock(block, nullptr);
    scarce::left = scarce::kAll;
    if (error) {
      ASSERT_EQ(orFree(block), orSuccess) << orGetErrorDetail();
    }
  }
  EXPECT_GT(number, 2);
}

TEST(HostMemory, its_end_leaves_a_guarded_block_to_be_freed) {
  EXPECT_EQ(again("HostMemory.DISABLED_its_end_leaves_a_guarded_block*",
                  {"OPENREG_SANITIZE=memory"}),
            0);
}

TEST(HostMemory, its_end_is_survived_under_every_schedule) {
  expectAgain("HostMemory.its_end_loses*",
              under({"blocking", "seed:1", "seed:2"}));
}

}  // namespace
