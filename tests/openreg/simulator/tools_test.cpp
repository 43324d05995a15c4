// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/ipc.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(Inject, an_allocation_fails_when_it_is_ordered_to) {
  void* pointer;
  ASSERT_EQ(orInject("alloc:2"), orSuccess);
  EXPECT_EQ(orMalloc(&pointer, 64), orSuccess);
  orFree(pointer);
  EXPECT_EQ(orMalloc(&pointer, 64), orErrorMemoryAllocation);
  EXPECT_EQ(detail(), "An allocation of 64 bytes was made to fail, by order.");
  EXPECT_EQ(orMalloc(&pointer, 64), orSuccess);
  orFree(pointer);
}

TEST(Inject, a_launch_and_a_copy_fail_their_device_by_name) {
  ASSERT_EQ(orInject("launch:2"), orSuccess);
  int ran = 0;
  for (int i = 0; i < 3; ++i) openreg::launch(nullptr, "count", [&] { ++ran; });
  EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
  EXPECT_EQ(detail(),
            "openreg:0 stopped in count: a launch was made to fail, by order");
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(orDeviceReset(), orSuccess);
  ASSERT_EQ(orInject("copy:1"), orSuccess);
  void* pointer;
  orMalloc(&pointer, 64);
  EXPECT_EQ(orMemset(pointer, 0, 64), orErrorLaunchFailure);
  EXPECT_EQ(detail(),
            "openreg:0 stopped in memset: a copy was made to fail, by order");
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(orMemset(pointer, 0, 64), orSuccess);
  orFree(pointer);
}

TEST(Inject, streams_events_and_pinned_memory_are_counted_together) {
  ASSERT_EQ(orInject("create:1,create:3,create:5"), orSuccess);
  orStream_t stream;
  EXPECT_EQ(orStreamCreate(&stream), orErrorMemoryAllocation);
  EXPECT_EQ(detail(), "The creation of a stream was made to fail, by order.");
  ASSERT_EQ(orStreamCreate(&stream), orSuccess);
  EXPECT_EQ(orStreamDestroy(stream), orSuccess);
  orEvent_t event;
  EXPECT_EQ(orEventCreate(&event), orErrorMemoryAllocation);
  EXPECT_EQ(detail(), "The creation of an event was made to fail, by order.");
  ASSERT_EQ(orEventCreate(&event), orSuccess);
  EXPECT_EQ(orEventDestroy(event), orSuccess);
  void* pinned;
  EXPECT_EQ(orMallocHost(&pinned, 8), orErrorMemoryAllocation);
  EXPECT_EQ(detail(),
            "The creation of pinned memory was made to fail, by order.");
  ASSERT_EQ(orMallocHost(&pinned, 8), orSuccess);
  EXPECT_EQ(orFreeHost(pinned), orSuccess);
  EXPECT_EQ(orInject(nullptr), orSuccess);
}

TEST(Inject, an_order_that_cannot_be_read_is_refused_and_changes_nothing) {
  for (const char* order :
       {"alloc", "alloc:", "alloc:x", "alloc:0", "alloc:-1", "frob:1", "lost:1",
        "alloc:1,,copy:1", "alloc:1,", ",alloc:1", "alloc: 1", "alloc:+1",
        "alloc:1++", "alloc:0+", "lost:0@1+", "lost:0@0",
        "alloc:18446744073709551616", "lost:4294967296@1", "copy:1 "}) {
    EXPECT_EQ(orInject(order), orErrorInvalidConfiguration) << order;
    EXPECT_NE(detail().find("cannot be read; it must be a list such as"),
              std::string::npos);
  }
  EXPECT_EQ(orInject(nullptr), orSuccess);
}

TEST(Inject, the_sentence_names_the_part) {
  EXPECT_EQ(orInject("alloc:1,copy:x,launch:2"), orErrorInvalidConfiguration);
  EXPECT_EQ(detail(),
            "The part 'copy:x' of the order cannot be read; it must be a list "
            "such as alloc:3,copy:2+,launch:10,lost:1@20.");
  for (const char* order : {"lost:99@1", "lost:-1@1", "lost:2@1"}) {
    EXPECT_EQ(orInject(order), orErrorInvalidConfiguration) << order;
    EXPECT_NE(detail().find("but this machine has 2 openreg devices"),
              std::string::npos);
  }
}

// Which of the next `calls` allocations fail, as a string of x and dots.
std::string failing(int calls) {
  std::string seen;
  for (int call = 0; call < calls; ++call) {
    void* pointer;
    seen += orMalloc(&pointer, 64) ? 'x' : '.';
    orFree(pointer);
  }
  return seen;
}

TEST(Inject, one_kind_has_any_number_of_counts) {
  ASSERT_EQ(orInject("alloc:1,alloc:2,alloc:4"), orSuccess);
  EXPECT_EQ(failing(6), "xx.x..");
  ASSERT_EQ(orInject("alloc:3+"), orSuccess);
  EXPECT_EQ(failing(6), "..xxxx");
  ASSERT_EQ(orInject("alloc:1,alloc:5+,alloc:3+"), orSuccess);
  EXPECT_EQ(failing(6), "x.xxxx");
  // A refused order keeps the one before.
  EXPECT_EQ(orInject("alloc:1,more"), orErrorInvalidConfiguration);
  EXPECT_EQ(failing(2), "xx");
  ASSERT_EQ(orInject(""), orSuccess);
  EXPECT_EQ(failing(3), "...");
}

TEST(Inject, a_lost_device_stays_lost_and_the_other_goes_on) {
  if (ranAgain({{"OPENREG_INJECT=lost:00@2"},
                {"OPENREG_INJECT=lost:0@3,lost:0@2,lost:1@99"}}))
    return;
  ASSERT_EQ(openreg::launch(nullptr, "first", [] {}), orSuccess);
  EXPECT_EQ(openreg::launch(nullptr, "second", [] {}), orErrorDeviceLost);
  EXPECT_EQ(detail(), "openreg:0 is lost.");
  EXPECT_EQ(orDeviceSynchronize(), orErrorDeviceLost);
  EXPECT_EQ(orDeviceReset(), orErrorDeviceLost);
  void* pointer;
  EXPECT_EQ(orMalloc(&pointer, 1), orErrorDeviceLost);
  orSetDevice(1);
  EXPECT_EQ(orMalloc(&pointer, 1), orSuccess);
  EXPECT_EQ(orFree(pointer), orSuccess);
}

// Ends a wait at the callback whose number is given.
int endAt(void* calls) { return --*static_cast<int*>(calls) == 0; }

TEST(WaitCallback, ends_a_wait_and_leaves_its_work) {
  std::atomic<bool> go{false}, ran{false};
  Event event;
  openreg::launch(nullptr, "held", [&] {
    while (!go) usleep(100);
    ran = true;
  });
  ASSERT_EQ(orEventRecord(event, nullptr), orSuccess);
  int calls = 0;
  ASSERT_EQ(orSetWaitCallback(10'000'000, &endAt, &calls), orSuccess);
  const auto begin = std::chrono::steady_clock::now();
  calls = 2;
  EXPECT_EQ(orDeviceSynchronize(), orErrorNotReady);
  calls = 2;
  EXPECT_EQ(orStreamSynchronize(nullptr), orErrorNotReady);
  calls = 2;
  EXPECT_EQ(orEventSynchronize(event), orErrorNotReady);
  const auto waited = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(waited, std::chrono::milliseconds(60));
  EXPECT_FALSE(ran);
  calls = 1;
  std::thread other(
      [&] { EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess); });
  usleep(30'000);  // The callback is not that thread's.
  go = true;
  other.join();
  EXPECT_TRUE(ran);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(orSetWaitCallback(0, nullptr, nullptr), orSuccess);
  EXPECT_EQ(orSetWaitCallback(0, &endAt, &calls), orErrorInvalidValue);
  EXPECT_STREQ(orGetErrorDetail(), "A wait cannot call back every 0 ns.");
}

// Waits itself, and would then end the wait of its caller.
int waitOnce(void* calls) {
  ++*static_cast<int*>(calls);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  return 1;
}

TEST(WaitCallback, may_wait_itself_and_is_not_called_meanwhile) {
  openreg::launch(nullptr, "slow", [] { usleep(50'000); });
  int calls = 0;
  ASSERT_EQ(orSetWaitCallback(1'000'000, &waitOnce, &calls), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);  // It is done by now.
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(orSetWaitCallback(0, nullptr, nullptr), orSuccess);
}

TEST(WaitCallback, work_that_another_thread_enqueues_does_not_prolong_a_wait) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) openreg::launch(nullptr, "short", [] { usleep(50); });
  });
  int calls = 0;
  ASSERT_EQ(orSetWaitCallback(1'000'000, &endAt, &calls), orSuccess);
  usleep(100'000);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_LT(calls, 0);
  done = true;
  other.join();
  EXPECT_EQ(orSetWaitCallback(0, nullptr, nullptr), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Ipc, DISABLED_other_process) {
  void* theirs = openOfParent();
  char word[6] = {};
  EXPECT_EQ(orMemcpy(word, theirs, 5, orMemcpyDeviceToHost), orSuccess)
      << detail();
  EXPECT_STREQ(word, "hello");
  EXPECT_EQ(orMemcpy(theirs, "world", 5, orMemcpyHostToDevice), orSuccess);
  EXPECT_EQ(orFree(theirs), orErrorInvalidValue);
  orIpcMemHandle_t handed_on;
  EXPECT_EQ(orIpcGetMemHandle(&handed_on, theirs), orErrorInvalidValue);
  EXPECT_NE(detail().find("that process can hand it on."), std::string::npos);
  EXPECT_EQ(orIpcCloseMemHandle(theirs), orSuccess);
  EXPECT_EQ(orIpcCloseMemHandle(theirs), orErrorInvalidValue);
  // Closing has given the addresses back.
  void* again = nullptr;
  EXPECT_EQ(orIpcOpenMemHandle(&again, handleOfParent()), orSuccess)
      << detail();
  EXPECT_EQ(again, theirs);
  EXPECT_EQ(orIpcCloseMemHandle(again), orSuccess);
}

TEST(Ipc, another_process_opens_a_block_and_both_see_it) {
  void *padding, *ours;
  orMalloc(&padding, 512);
  orMalloc(&ours, 10000);
  orMemcpy(ours, "hello", 5, orMemcpyHostToDevice);
  EXPECT_EQ(again("Ipc.DISABLED_other_process", {handleOf(ours)}), 0);
  char word[6] = {};
  orMemcpy(word, ours, 5, orMemcpyDeviceToHost);
  EXPECT_STREQ(word, "world");
  int host;
  orIpcMemHandle_t handle;
  EXPECT_EQ(orIpcGetMemHandle(&handle, &host), orErrorInvalidValue);
  orFree(ours);
  orFree(padding);
}

#if defined(__SANITIZE_ADDRESS__)
TEST(Debug, DISABLED_use_after_free) {
  void* pointer;
  orMalloc(&pointer, 4096);
  orFree(pointer);
  openreg::launch(nullptr, "late", [pointer] {
    *static_cast<volatile char*>(openreg::onDevice(pointer)) = 1;
  });
  orDeviceSynchronize();
}

TEST(Debug, a_kernel_that_touches_freed_memory_is_reported) {
  EXPECT_NE(again("Debug.DISABLED_use_after_free", {}), 0);
}
#endif

TEST(Device, a_wrong_setting_is_named_with_what_is_allowed) {
  const std::string bytes =
      "; it must be a whole number from 1048576 to 1099511627776, in bytes or "
      "with K, M or G.";
  const std::string threads = "; it must be a whole number from 1 to 64.";
  const std::string schedules =
      "; it must be threads, blocking, seed:N or order:A,B.";
  const std::pair<std::string, std::string> settings[] = {
      {"OPENREG_DEVICE_COUNT=17", "; it must be a whole number from 0 to 16."},
      {"OPENREG_DEVICE_THREADS=0", threads},
      {"OPENREG_DEVICE_THREADS=many", threads},
      {"OPENREG_DEVICE_MEMORY=1T", bytes},
      {"OPENREG_DEVICE_MEMORY=64MB", bytes},
      {"OPENREG_RESERVE=1023K", bytes},
      {"OPENREG_SCHEDULE=seed:5x", schedules},
      {"OPENREG_SCHEDULE=seed:x", schedules},
      {"OPENREG_INJECT=alloc:1,more",
       ". The part 'more' of the order cannot be read; it must be a list such "
       "as alloc:3,copy:2+,launch:10,lost:1@20."},
      {"OPENREG_INJECT=lost:2@1",
       ". The part 'lost:2@1' of the order names openreg:2, but this machine "
       "has 2 openreg devices, numbered from 0."}};
  std::vector<std::vector<std::string>> processes;
  for (const auto& [setting, allowed] : settings)
    processes.push_back({setting, "OPENREG_TEST_SENTENCE=" + setting +
                                      " is not allowed" + allowed});
  if (ranAgain(processes)) return;
  int count = 0;
  void* pointer;
  EXPECT_EQ(orMalloc(&pointer, 1), orErrorInvalidConfiguration);
  EXPECT_EQ(detail(), std::getenv("OPENREG_TEST_SENTENCE"));
  EXPECT_EQ(orInject("alloc:1"), orErrorInvalidConfiguration);
  EXPECT_EQ(orDeviceWindow(), 0);
  orGetDeviceCount(&count);
  EXPECT_EQ(count, 0);
}

TEST(Device, an_empty_setting_is_the_default) {
  if (ranAgain({{"OPENREG_DEVICE_COUNT="}})) return;
  int count = 0;
  EXPECT_EQ(orGetDeviceCount(&count), orSuccess);
  EXPECT_EQ(count, 2);
}

TEST(Device, has_room_for_a_million_events) {
  if (ranAgain({{}})) return;
  constexpr int kMost = 1 << 20;
  std::vector<orEvent_t> events;
  orEvent_t event = nullptr;
  while (orEventCreate(&event) == orSuccess) {
    events.push_back(event);
    ASSERT_LE(events.size(), size_t{kMost});
  }
  EXPECT_EQ(detail(),
            "There are too many events: a machine has room for 2^20.");
  EXPECT_EQ(orEventDestroy(events.back()), orSuccess);
  EXPECT_EQ(orEventCreate(&event), orSuccess);
}

// The first failure is the one that is told, and a query tells it, too.
TEST(Device, a_second_failure_is_dropped) {
  Stream one, two;
  std::atomic<bool> go{false};
  openreg::launch(two, "second", [&go] {
    while (!go) usleep(100);
    throw std::runtime_error("two");
  });
  openreg::launch(one, "first", [] { throw std::runtime_error("one"); });
  EXPECT_EQ(orStreamSynchronize(one), orErrorLaunchFailure);
  go = true;
  EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
  EXPECT_EQ(detail(), "openreg:0 stopped in first: one");
  EXPECT_EQ(orStreamQuery(one), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess);
}

TEST(Device, a_machine_without_devices_says_so) {
  if (ranAgain({{"OPENREG_DEVICE_COUNT=0"}})) return;
  void* pointer;
  EXPECT_EQ(orMalloc(&pointer, 1), orErrorNoDevice);
  EXPECT_EQ(orSetDevice(0), orErrorNoDevice);
  pointer = &pointer;
  EXPECT_EQ(orFree(pointer), orErrorNoDevice);
  EXPECT_EQ(orFreeHost(pointer), orErrorNoDevice);
  EXPECT_EQ(orRetireBlock(pointer, nullptr), orErrorNoDevice);
  EXPECT_EQ(orIpcOpenMemHandle(&pointer, {}), orErrorNoDevice);
  EXPECT_EQ(orIpcCloseMemHandle(pointer), orErrorNoDevice);
  EXPECT_EQ(orDeviceSynchronize(), orErrorNoDevice);
  EXPECT_EQ(detail(), "This machine has no openreg device.");
}

TEST(WaitCallback, may_never_be_called) {
  int calls = 1;
  ASSERT_EQ(orSetWaitCallback(INT64_MAX, &endAt, &calls), orSuccess);
  openreg::launch(nullptr, "slow", [] { usleep(20'000); });
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  EXPECT_EQ(orSetWaitCallback(0, nullptr, nullptr), orSuccess);
}

}  // namespace
