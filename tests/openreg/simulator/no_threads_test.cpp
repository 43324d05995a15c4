// SPDX-License-Identifier: BSD-3-Clause
// The system refuses threads to a device. Each test runs in a process of its
// own, whose address space has room for a few stacks only.
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

constexpr size_t kStack = size_t{64} << 20;

// Leaves the process room for this many more stacks, and some memory.
void leaveRoomFor(int stacks) {
  rlimit stack{kStack, kStack}, space;
  ASSERT_EQ(setrlimit(RLIMIT_STACK, &stack), 0);
  size_t pages;
  std::ifstream("/proc/self/statm") >> pages;
  getrlimit(RLIMIT_AS, &space);
  space.rlim_cur = pages * sysconf(_SC_PAGESIZE) + stacks * kStack + kStack / 2;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &space), 0);
}

void leaveAllRoom() {
  rlimit space;
  getrlimit(RLIMIT_AS, &space);
  space.rlim_cur = space.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &space), 0);
}

bool interruptIsBlocked() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGINT);
}

// Starts the machine, but no thread.
void startMachine() {
  void* pointer;
  ASSERT_EQ(orMalloc(&pointer, 64), orSuccess);
}

TEST(NoThreads, DISABLED_at_all) {
  startMachine();
  leaveRoomFor(0);
  int ran = 0;
  EXPECT_EQ(enqueue(nullptr, [&] { ++ran; }), orErrorUnknown);
  EXPECT_NE(std::string(orGetErrorDetail()).find("The host system failed"),
            std::string::npos)
      << orGetErrorDetail();
  EXPECT_FALSE(interruptIsBlocked());
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(orStreamQuery(nullptr), orSuccess);
  leaveAllRoom();
  EXPECT_EQ(enqueue(nullptr, [&] { ++ran; }), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(ran, 1);
}

TEST(NoThreads, DISABLED_but_one) {
  startMachine();
  leaveRoomFor(1);
  std::atomic<int> ran{0};
  Stream a, b;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(enqueue(i % 2 ? a.handle : b.handle, [&] { ++ran; }), orSuccess)
        << orGetErrorDetail();
  }
  EXPECT_FALSE(interruptIsBlocked());
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(ran, 1000);
}

// What a test of this program returns, with little room for stacks.
int status(const std::string& test, const std::string& schedule) {
  char self[4096] = {};
  EXPECT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string command =
      "ulimit -s " + std::to_string(kStack >> 10) +
      "; OPENREG_DEVICE_THREADS=4 OPENREG_SCHEDULE=" + schedule +
      " timeout -s KILL 8 " + self +
      " --gtest_also_run_disabled_tests --gtest_filter=NoThreads.DISABLED_" +
      test + " >&2";
  return std::system(command.c_str()) >> 8;
}

class FewThreads : public testing::Test {
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "A sanitizer needs the address space for itself.";
#endif
  }
};

TEST_F(FewThreads, without_a_thread_a_launch_is_refused_and_changes_nothing) {
  for (const char* schedule : {"threads", "blocking", "seed:1"}) {
    EXPECT_EQ(status("at_all", schedule), 0) << schedule;
  }
}

TEST_F(FewThreads, with_fewer_threads_a_device_runs_everything) {
  EXPECT_EQ(status("but_one", "threads"), 0);
}

}  // namespace
