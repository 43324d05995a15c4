// SPDX-License-Identifier: BSD-3-Clause
// What code that runs on the device may call: everything that does not wait.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {

// Whether a host function that calls `call` ends, and what it returned.
orError_t onDevice(const std::function<orError_t()>& call) {
  Stream stream;
  std::atomic<bool> done{false};
  orError_t error = orErrorUnknown;
  EXPECT_EQ(enqueue(stream,
                    [&] {
                      error = call();
                      done = true;
                    }),
            orSuccess);
  for (int ms = 0; ms < 5000 && !done; ++ms) {
    // Runs the function if the schedule is seeded.
    orStreamQuery(stream);
    usleep(1000);
  }
  if (!done) {
    ADD_FAILURE() << "The device waits for itself.";
    std::_Exit(1);
  }
  return error;
}

TEST_F(Refused, waiting_on_a_thread_of_the_device) {
  char large[1 << 17] = {};
  void* room;
  ASSERT_EQ(orMalloc(&room, sizeof(large)), orSuccess);
  const Call calls[] = {
      CALL(orDeviceSynchronize()),
      CALL(orDeviceReset()),
      CALL(orStreamSynchronize(nullptr)),
      CALL(orEventSynchronize(event)),
      CALL(orFree(block)),
      CALL(orFreeHost(pinned)),
      CALL(orMemset(block, 0, 100)),
      CALL(orMemcpy(host, block, 100, orMemcpyDeviceToHost)),
      // To pageable memory, and much from there.
      CALL(orMemcpyAsync(host, block, 100, orMemcpyDeviceToHost, nullptr)),
      CALL(orMemcpyAsync(room, large, sizeof(large), orMemcpyHostToDevice,
                         nullptr)),
  };
  for (const auto& [text, make] : calls)
    EXPECT_EQ(onDevice(make), orErrorNotPermitted) << text;
  EXPECT_EQ(orFree(room), orSuccess);
}

TEST_F(Refused, not_what_only_enqueues_queries_or_allocates) {
  std::atomic<int> ran{0};
  orStream_t stream;
  const auto done = [](orError_t error) {
    return error == orErrorNotReady ? orSuccess : error;
  };
  const Call calls[] = {
      CALL(enqueue(nullptr, [&] { ++ran; })),
      CALL(orEventRecord(event, nullptr)),
      CALL(orStreamWaitEvent(nullptr, event, 0)),
      CALL(orMemcpyAsync(block, host, 100, orMemcpyHostToDevice, nullptr)),
      CALL(orMemcpyAsync(pinned, block, 100, orMemcpyDeviceToHost, nullptr)),
      CALL(done(orStreamQuery(nullptr))),
      CALL(done(orEventQuery(event))),
      CALL(orMalloc(&freed, 100)),
      CALL(orStreamCreate(&stream)),
      CALL(orStreamDestroy(stream)),
  };
  for (const auto& [text, make] : calls)
    EXPECT_EQ(onDevice(make), orSuccess) << text;
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(orFree(freed), orSuccess);
}

TEST(DeviceCode, the_error_says_what_to_do) {
  std::string detail;
  onDevice([&] {
    const orError_t error = orDeviceSynchronize();
    detail = orGetErrorDetail();
    return error;
  });
  EXPECT_EQ(detail,
            "This call waits for the device, and it was made by a kernel or a "
            "host function, for which the device waits; make it on a thread of "
            "the program.");
}

TEST(DeviceCode, DISABLED_exits) {
  enqueue(nullptr, [] { std::exit(7); });
  orStreamSynchronize(nullptr);
  usleep(10000000);
}

// Under a seed too, where a query runs work, but not from within work.
TEST(DeviceCode, a_host_function_can_end_the_process_under_every_schedule) {
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  for (const char* schedule : {"threads", "blocking", "seed:1"}) {
    const std::string run = std::string("OPENREG_SCHEDULE=") + schedule +
                            " timeout -s KILL 8 " + self +
                            " --gtest_also_run_disabled_tests --gtest_filter=";
    const auto status = [&](const char* test) {
      return std::system((run + test + " > /dev/null").c_str()) >> 8;
    };
    EXPECT_EQ(status("DeviceCode.DISABLED_exits"), 7) << schedule;
    EXPECT_EQ(status("Refused.not_what_only_*"), 0) << schedule;
  }
}

}  // namespace
