// SPDX-License-Identifier: BSD-3-Clause
// Graphs of several streams: what runs at the same time, and what waits.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using openreg::launch;

/// Whether another kernel comes here within ten seconds.
class Meeting {
 public:
  bool meet() {
    ++arrived_;
    for (int i = 0; i < 100'000 && arrived_ < 2; ++i) usleep(100);
    return arrived_ >= 2;
  }

 private:
  std::atomic<int> arrived_{0};
};

TEST(Branches, of_a_graph_run_at_the_same_time) {
  Stream main, side;
  auto meeting = std::make_shared<Meeting>();
  std::atomic<int> met{0};
  const Executable exec = executable(main, [&] {
    follow(side, main);
    for (const Stream* stream : {&main, &side})
      launch(stream->handle, "meet", [&, meeting] { met += meeting->meet(); });
    follow(main, side);
  });
  launchAndWait(exec, main);
  EXPECT_EQ(met, 2);
}

// Each value is computed from two others, one of which is on the other stream.
TEST(Branches, meet_where_they_were_captured_to_under_every_schedule) {
  if (ranAgain(under({"threads", "blocking", "seed:1", "seed:2", "seed:3"})))
    return;
  constexpr int kRounds = 8;
  Stream main, side, other;
  // Row r + 1 is computed from row r, one column on each stream.
  std::vector<std::pair<long, long>> rows(kRounds + 1);
  long expected[] = {1, 1};
  for (int r = 0; r < kRounds; ++r) {
    const long sum = expected[0] + expected[1];
    expected[1] = 2 * expected[0] + expected[1];
    expected[0] = sum;
  }
  long start = 0, result = 0;
  Executable exec = executable(main, [&] {
    launch(main, "start", [&] { rows[0] = {start, start}; });
    for (int r = 0; r < kRounds; ++r) {
      follow(side, main);
      follow(main, side);
      launch(main, "sum",
             [&, r] { rows[r + 1].first = rows[r].first + rows[r].second; });
      launch(side, "mix", [&, r] {
        rows[r + 1].second = 2 * rows[r].first + rows[r].second;
      });
    }
    follow(main, side);
  });
  long wrong = 0, launches = 0;
  for (int i = 1; i <= 20; ++i) {
    const Stream& stream = i % 3 ? main : other;
    launch(stream, "set", [&start, i] { start = i; });
    orGraphLaunch(exec, stream);
    launch(stream, "check", [&, i] {
      result = rows[kRounds].first - rows[kRounds].second;
      wrong += result != i * (expected[0] - expected[1]);
      ++launches;
    });
    // The other stream sets `start` next.
    follow(i % 3 == 2 ? other : main, stream);
  }
  exec.destroy();
  orDeviceSynchronize();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(launches, 20);
}

TEST(Branches, may_begin_and_end_where_the_first_one_has_no_node) {
  Stream main, side;
  std::string order;
  const auto note = [&](const Stream& stream, char letter) {
    launch(stream, "note", [&order, letter] {
      usleep(1000);
      order += letter;
    });
  };
  const Executable exec = executable(main, [&] {
    follow(side, main);
    note(side, 'b');
    note(side, 'c');
    follow(main, side);
  });
  note(main, 'a');
  orGraphLaunch(exec, main);
  note(main, 'd');
  orStreamSynchronize(main);
  EXPECT_EQ(order, "abcd");
}

TEST(Branches, pass_on_what_a_kernel_of_one_refuses) {
  Stream main, side, other, reader;
  const Executable exec = executable(main, [&] {
    follow(side, main);
    launch(side, "halve", [] { throw openreg::Refusal("3 is not even"); });
    launch(main, "nothing", [] {});
    follow(main, side);
  });
  orGraphLaunch(exec, main);
  follow(reader, main);
  EXPECT_EQ(orStreamSynchronize(other), orSuccess);
  EXPECT_EQ(orStreamSynchronize(reader), orErrorKernelRefused);
  EXPECT_STREQ(orGetErrorDetail(),
               "openreg:0 could not run halve: 3 is not even");
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Branches, stop_when_a_kernel_of_one_throws) {
  Stream main, side;
  std::atomic<int> after{0};
  bool is_wrong = true;
  const Executable exec = executable(main, [&] {
    launch(main, "wrong", [&] {
      if (is_wrong) throw std::runtime_error("no.");
    });
    follow(side, main);
    launch(side, "next", [&] { ++after; });
    launch(main, "next", [&] { ++after; });
    follow(main, side);
  });
  orGraphLaunch(exec, main);
  EXPECT_EQ(orStreamSynchronize(main), orErrorLaunchFailure);
  EXPECT_EQ(orGraphLaunch(exec, main), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess) << detail();
  EXPECT_EQ(after, 0);
  is_wrong = false;
  EXPECT_EQ(orGraphLaunch(exec, main), orSuccess) << detail();
  orDeviceSynchronize();
  EXPECT_EQ(after, 2);
}

TEST(Branches, of_a_launch_that_is_refused_run_nothing) {
  Stream main, side;
  std::atomic<int> runs{0};
  const Executable exec = executable(main, [&] {
    follow(side, main);
    launch(side, "count", [&] { ++runs; });
    launch(main, "count", [&] { ++runs; });
    follow(main, side);
  });
  orSetDevice(1);
  EXPECT_EQ(orGraphLaunch(exec, nullptr), orErrorInvalidValue);
  orSetDevice(0);
  orDeviceSynchronize();
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(orGraphLaunch(exec, main), orSuccess) << detail();
  orStreamSynchronize(main);
  EXPECT_EQ(runs, 2);
}

TEST(Branches, are_reported_as_one_launch) {
  Stream main, side;
  const Executable exec = executable(main, [&] {
    follow(side, main);
    launch(side, "mul", [] {});
    launch(main, "add", [] {});
    follow(main, side);
  });
  const auto all = recordsOf(exec, main, 8);
  orRecord launched{}, mul{}, add{};
  for (const auto& [name, record] : all) {
    EXPECT_EQ(record.correlation, all[0].second.correlation);
    if (record.phase != orCommandEnds) continue;
    (name == "graph" ? launched : name == "mul" ? mul : add) = record;
  }
  EXPECT_EQ(launched.stream, main.handle);
  EXPECT_EQ(add.stream, main.handle);
  EXPECT_NE(mul.stream, main.handle);
  for (const orRecord& node : {mul, add}) {
    EXPECT_GE(node.begin, launched.begin);
    EXPECT_LE(node.end, launched.end);
  }
}

TEST(Branches, are_launched_by_many_threads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      Stream main, side;
      for (int i = 0; i < 25; ++i) {
        int left = 0, right = 0, sum = 0;
        Executable exec(captured(
            main,
            [&] {
              follow(side, main);
              launch(main, "count", [&] { ++left; });
              launch(side, "count", [&] { ++right; });
              follow(main, side);
              launch(main, "sum", [&] { sum = left + right; });
            },
            orStreamCaptureModeThreadLocal));
        for (int n = 0; n < 3; ++n) orGraphLaunch(exec, main);
        // The launches that were enqueued still run.
        exec.destroy();
        orStreamSynchronize(main);
        EXPECT_EQ(sum, 6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
