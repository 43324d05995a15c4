// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

// What one test of this program prints to its pipe, under a schedule.
std::string printed(const std::string& test, const std::string& schedule) {
  char self[4096] = {};
  EXPECT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string command =
      "OPENREG_SCHEDULE=" + schedule + " " + self +
      " --gtest_also_run_disabled_tests --gtest_filter=" + test;
  FILE* pipe = popen(command.c_str(), "r");
  std::string found;
  for (char line[256]; std::fgets(line, sizeof(line), pipe);) {
    if (std::string(line).rfind("said ", 0) == 0) found += line;
  }
  EXPECT_EQ(pclose(pipe), 0) << test << " under " << schedule;
  return found;
}

TEST(Schedule, DISABLED_order) {
  Stream streams[4];
  std::string order;
  for (int i = 0; i < 5; ++i) {
    for (int s = 0; s < 4; ++s) {
      openreg::launch(streams[s], "note",
                      [&order, s] { order += static_cast<char>('a' + s); });
    }
  }
  orDeviceSynchronize();
  std::printf("said %s\n", order.c_str());
}

TEST(Schedule, goes_on_with_another_thread_if_a_kernel_ends_its_own) {
  expectAgain("Kernel.one_that_ends_its_thread*", under({"seed:1", "order:"}));
}

TEST(Schedule, a_seed_gives_its_order_again_and_another_seed_another) {
  const std::string first = printed("Schedule.DISABLED_order", "seed:1");
  EXPECT_EQ(first.size(), 26u);
  EXPECT_EQ(printed("Schedule.DISABLED_order", "seed:1"), first);
  int others = 0;
  for (int seed = 2; seed < 6; ++seed)
    others += printed("Schedule.DISABLED_order",
                      "seed:" + std::to_string(seed)) != first;
  EXPECT_GE(others, 3);
}

// A reader that forgot to wait for the event of the writer.
TEST(Schedule, DISABLED_race) {
  Stream writer, reader;
  int value = 0, seen = 0;
  openreg::launch(writer, "write", [&] { value = 1; });
  openreg::launch(reader, "read", [&] { seen = value; });
  orDeviceSynchronize();
  std::printf("said %d\n", seen);
}

TEST(Schedule, a_planted_race_is_found_and_found_again) {
  int wrong = 0;
  for (int seed = 0; seed < 100 && !wrong; ++seed) {
    if (printed("Schedule.DISABLED_race", "seed:" + std::to_string(seed)) ==
        "said 0\n")
      wrong = seed + 1;
  }
  ASSERT_GT(wrong, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(
        printed("Schedule.DISABLED_race", "seed:" + std::to_string(wrong - 1)),
        "said 0\n");
  }
}

// The ways in which a program finds out that its work is done.
TEST(Schedule, a_polling_loop_ends_under_every_schedule) {
  if (ranAgain(under({"threads", "blocking", "seed:3"}))) return;
  Stream stream;
  Event event;
  int ran = 0;
  for (int i = 0; i < 10; ++i) openreg::launch(stream, "count", [&] { ++ran; });
  orEventRecord(event, stream);
  while (orEventQuery(event) == orErrorNotReady) {
  }
  EXPECT_EQ(ran, 10);
  openreg::launch(stream, "count", [&] { ++ran; });
  while (orStreamQuery(stream) == orErrorNotReady) {
  }
  EXPECT_EQ(ran, 11);
  for (int i = 0; i < 5000; ++i)
    openreg::launch(stream, "count", [&] { ++ran; });
  orEventRecord(event, stream);
  EXPECT_EQ(orEventSynchronize(event), orSuccess);
  EXPECT_EQ(ran, 5011);
}

TEST(Schedule, a_blocking_launch_is_done_when_it_returns) {
  if (ranAgain(under({"blocking"}))) return;
  int ran = 0;
  openreg::launch(nullptr, "count", [&] {
    usleep(1000);
    ++ran;
  });
  EXPECT_EQ(ran, 1);
}

TEST(Schedule,
     a_blocking_launch_behind_a_number_that_is_there_is_done_as_well) {
  if (ranAgain(under({"blocking"}))) return;
  void* word = nullptr;
  ASSERT_EQ(orMallocHost(&word, sizeof(uint32_t)), orSuccess);
  Stream stream;
  auto* const number = static_cast<uint32_t*>(word);
  *number = 0;
  for (int i = 1; i <= 50; ++i) {
    std::atomic<bool> has_run{false};
    EXPECT_EQ(orStreamWaitValue32(stream, number, i), orSuccess);
    orSignalValue32(number, i);
    openreg::launch(stream, "late", [&] {
      usleep(200);
      has_run = true;
    });
    EXPECT_TRUE(has_run);
    orStreamSynchronize(stream);
  }
  EXPECT_EQ(orFreeHost(word), orSuccess);
}

// Otherwise its caller would free what the function has freed.
TEST(Schedule, a_host_function_that_was_called_was_launched_without_an_error) {
  if (ranAgain(under({"blocking"}))) return;
  const auto fail = [](void*) { throw std::runtime_error("by zero"); };
  EXPECT_EQ(orLaunchHostFunc(nullptr, fail, nullptr), orSuccess);
  EXPECT_EQ(orLaunchHostFunc(nullptr, fail, nullptr), orErrorLaunchFailure);
  EXPECT_EQ(openreg::launch(nullptr, "late", [] {}), orErrorLaunchFailure);
}

TEST(Schedule, DISABLED_exit) {
  openreg::launch(nullptr, "late", [] {
    usleep(20000);
    std::printf("said late\n");
    std::fflush(stdout);
  });
}

TEST(Schedule, work_is_not_lost_when_the_process_ends) {
  for (const char* schedule : {"threads", "seed:1"}) {
    EXPECT_EQ(printed("Schedule.DISABLED_exit", schedule), "said late\n")
        << schedule;
  }
}

// Each stream keeps a vector of the counters that it must have seen; events
// carry them from stream to stream, as they would carry data.
TEST(Schedule, many_threads_streams_and_events_keep_every_order) {
  constexpr int kThreads = 4, kStreams = 8, kRounds = 400;
  std::vector<Stream> streams(kStreams);
  struct Clock {
    std::vector<int> seen = std::vector<int>(kStreams);
  };
  std::vector<Clock> clocks(kStreams);
  std::atomic<int> wrong{0};
  std::vector<std::mutex> turns(kStreams);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      unsigned state = static_cast<unsigned>(t) + 1;
      for (int round = 0; round < kRounds; ++round) {
        state = state * 1664525 + 1013904223;
        const int from = static_cast<int>(state >> 8) % kStreams,
                  to = static_cast<int>(state >> 20) % kStreams;
        if (from == to) continue;
        std::scoped_lock both(turns[from], turns[to]);
        auto carried = std::make_shared<Clock>();
        orEvent_t event;
        orEventCreateWithFlags(&event, orEventDisableTiming);
        openreg::launch(streams[from], "tick", [&clocks, from, carried] {
          ++clocks[from].seen[from];
          *carried = clocks[from];
        });
        orEventRecord(event, streams[from]);
        orStreamWaitEvent(streams[to], event, 0);
        openreg::launch(streams[to], "learn", [&, to, carried] {
          for (int s = 0; s < kStreams; ++s) {
            if (carried->seen[s] < 0) ++wrong;
            clocks[to].seen[s] = std::max(clocks[to].seen[s], carried->seen[s]);
          }
          if (carried->seen == std::vector<int>(kStreams))
            ++wrong;  // Not yet written: came too early.
        });
        orEventDestroy(event);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
