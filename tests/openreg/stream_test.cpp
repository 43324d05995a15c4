// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/launch.h"
#include "tests/openreg/stream.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(Stream, commands_run_in_order) {
  Stream stream;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) {
    openreg::launch(stream.handle, "note", [&seen, i] { seen.push_back(i); });
  }
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
}

TEST(Stream, commands_of_several_producers_all_run) {
  Stream stream;
  std::atomic<int> count{0};
  std::vector<std::thread> producers;
  for (int p = 0; p < 4; ++p) {
    producers.emplace_back([&] {
      for (int i = 0; i < 2500; ++i)
        openreg::launch(stream.handle, "count", [&] { ++count; });
    });
  }
  for (auto& producer : producers) producer.join();
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
  EXPECT_EQ(count, 10000);
}

TEST(Stream, a_launch_does_not_wait) {
  Stream stream;
  std::atomic<bool> go{false}, ran{false};
  openreg::launch(stream.handle, "held", [&] {
    while (!go) usleep(10);
    ran = true;
  });
  EXPECT_FALSE(ran);
  EXPECT_EQ(orStreamQuery(stream.handle), orErrorNotReady);
  go = true;
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Stream, two_streams_run_at_a_time) {
  Stream a, b;
  std::atomic<bool> a_runs{false}, b_runs{false};
  openreg::launch(a.handle, "a", [&] {
    a_runs = true;
    while (!b_runs) usleep(10);
  });
  openreg::launch(b.handle, "b", [&] {
    b_runs = true;
    while (!a_runs) usleep(10);
  });
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Stream, a_thousand_streams_share_the_threads) {
  std::vector<Stream> streams(1000);
  std::atomic<int> count{0};
  for (auto& stream : streams)
    openreg::launch(stream.handle, "count", [&] { ++count; });
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(count, 1000);
}

TEST(Stream, the_more_urgent_stream_goes_first) {
  std::vector<Stream> holders(2);
  std::atomic<int> held{0};
  std::atomic<bool> go{false};
  for (auto& holder : holders) {
    openreg::launch(holder.handle, "held", [&] {
      ++held;
      while (!go) usleep(10);
    });
  }
  while (held < 2) usleep(10);
  Stream low(0), high(-2);
  std::mutex mutex;
  std::string order;
  auto note = [&](char who) {
    return [&, who] {
      {
        std::lock_guard lock(mutex);
        order += who;
      }
      usleep(20000);
    };
  };
  openreg::launch(low.handle, "low", note('l'));
  openreg::launch(low.handle, "low", note('l'));
  openreg::launch(low.handle, "low", note('l'));
  openreg::launch(high.handle, "high", note('h'));
  go = true;
  orDeviceSynchronize();
  EXPECT_NE(order.substr(0, 2).find('h'), std::string::npos) << order;
}

TEST(Stream, a_destroyed_stream_finishes_its_work_and_its_handle_is_refused) {
  orStream_t stream;
  orStreamCreate(&stream);
  std::atomic<bool> ran{false};
  openreg::launch(stream, "slow", [&] {
    usleep(5000);
    ran = true;
  });
  EXPECT_EQ(orStreamDestroy(stream), orSuccess);
  EXPECT_EQ(orStreamDestroy(stream), orErrorInvalidResourceHandle);
  EXPECT_EQ(openreg::launch(stream, "late", [] {}),
            orErrorInvalidResourceHandle);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_TRUE(ran);
  EXPECT_EQ(orStreamQuery(reinterpret_cast<orStream_t>(0x1234567)),
            orErrorInvalidResourceHandle);
}

TEST(Stream, a_kernel_that_throws_fails_the_device_until_it_is_reset) {
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

TEST(Stream, captures_larger_than_a_command_are_carried_too) {
  Stream stream;
  std::array<int, 1000> large{};
  large[999] = 42;
  int seen = 0;
  openreg::launch(stream.handle, "large",
                  [large, &seen] { seen = large[999]; });
  orStreamSynchronize(stream.handle);
  EXPECT_EQ(seen, 42);
}

TEST(Stream, a_kernel_can_be_launched_as_the_reference_does) {
  Stream stream;
  int seen = 0;
  orLaunchKernel(
      stream.handle, [](int* to, int value) { *to = value; }, &seen, 7);
  orStreamSynchronize(stream.handle);
  EXPECT_EQ(seen, 7);
}

TEST(Stream, what_is_not_allowed_is_refused) {
  orStream_t stream;
  EXPECT_EQ(orStreamCreate(nullptr), orErrorInvalidValue);
  EXPECT_EQ(orStreamCreateWithPriority(&stream, 1, 0), orErrorInvalidValue);
  EXPECT_EQ(orStreamDestroy(nullptr), orErrorInvalidResourceHandle);
  EXPECT_EQ(orSetDevice(2), orErrorInvalidDevice);
  EXPECT_STREQ(orGetErrorDetail(),
               "openreg:2 does not exist; this machine has 2 openreg devices, "
               "numbered from 0.");
  EXPECT_EQ(orPeekAtLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orSuccess);
}

TEST(Stream, the_default_stream_cannot_be_destroyed_by_its_handle_either) {
  orStream_t standard;
  orDeviceGetDefaultStream(&standard, 0);
  EXPECT_EQ(orStreamDestroy(standard), orErrorInvalidResourceHandle);
  EXPECT_STREQ(orGetErrorDetail(), "The default stream cannot be destroyed.");
  EXPECT_EQ(openreg::launch(nullptr, "after", [] {}), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Stream, waiting_for_all_streams_is_not_confused_by_a_destroyed_one) {
  std::atomic<bool> go{false};
  Stream held;
  orStream_t idle;
  orStreamCreate(&idle);
  openreg::launch(held.handle, "held", [&] {
    while (!go) usleep(10);
  });
  std::thread waiter([] { orDeviceSynchronize(); });
  usleep(5000);
  orStreamDestroy(idle);
  orSetDevice(1);
  {
    Stream other;  // In the destroyed one's place, on another device.
    std::atomic<bool> stay{true};
    openreg::launch(other.handle, "long", [&] {
      while (stay) usleep(10);
    });
    go = true;
    waiter.join();
    stay = false;
    orStreamSynchronize(other.handle);
  }
  orSetDevice(0);
}

/// Waits about as long as a thread of the device stays with an empty stream.
void waitUntilItLeaves(int attempt) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::nanoseconds(45000 + 10 * (attempt % 1500));
  while (std::chrono::steady_clock::now() < end) continue;
}

/// Whether it is done within some seconds.
template <class Done>
bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(100);
  }
  return true;
}

TEST(Stream, no_command_is_overlooked_by_a_thread_that_leaves) {
  int count = 0;
  for (int i = 0; i < 8000; ++i) {
    openreg::launch(nullptr, "count", [&] { ++count; });
    waitUntilItLeaves(i);
  }
  ASSERT_TRUE(eventually([] { return orStreamQuery(nullptr) == orSuccess; }));
  EXPECT_EQ(count, 8000);
}

TEST(Stream, nor_is_the_last_one_of_a_stream_that_is_destroyed) {
  std::atomic<int> count{0};
  for (int i = 0; i < 4000; ++i) {
    Stream stream;
    openreg::launch(stream.handle, "count", [&] { ++count; });
    waitUntilItLeaves(i);
    openreg::launch(stream.handle, "count", [&] { ++count; });
  }
  EXPECT_TRUE(eventually([&] { return count >= 8000; }));
  EXPECT_EQ(count, 8000);
}

TEST(Stream, streams_come_and_go_while_their_commands_run) {
  std::atomic<int> count{0};
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host) {
    hosts.emplace_back([&count, host] {
      orSetDevice(host % 2);
      for (int i = 0; i < 1000; ++i) {
        Stream stream;
        for (int command = 0; command < i % 4; ++command)
          openreg::launch(stream.handle, "count", [&] { ++count; });
        if (i % 3 == 0) orStreamSynchronize(stream.handle);
      }
      orDeviceSynchronize();
    });
  }
  for (auto& host : hosts) host.join();
  EXPECT_EQ(count, 4 * 1500);
}

TEST(Stream, a_host_that_runs_ahead_waits_at_last) {
  Stream stream;
  std::atomic<bool> go{false};
  std::atomic<int> launched{0};
  openreg::launch(stream.handle, "held", [&] {
    while (!go) usleep(10);
  });
  std::thread host([&] {
    for (; launched < 10000; ++launched)
      openreg::launch(stream.handle, "next", [] {});
  });
  usleep(50000);
  EXPECT_LT(launched, 5000);
  go = true;
  host.join();
  EXPECT_EQ(orStreamSynchronize(stream.handle), orSuccess);
}

TEST(Stream, a_created_stream_is_not_the_default_one) {
  Stream stream;
  orStream_t standard;
  ASSERT_EQ(orDeviceGetDefaultStream(&standard, 0), orSuccess);
  EXPECT_NE(stream.handle, standard);
  EXPECT_NE(stream.handle, nullptr);
}

TEST(Stream, the_devices_threads_may_run_on_every_core) {
  cpu_set_t host, device;
  sched_getaffinity(0, sizeof(host), &host);
  openreg::launch(nullptr, "look",
                  [&] { sched_getaffinity(0, sizeof(device), &device); });
  orStreamSynchronize(nullptr);
  EXPECT_TRUE(CPU_EQUAL(&host, &device));
}

TEST(Stream, an_idle_device_uses_no_processor_time) {
  openreg::launch(nullptr, "wake", [] {});
  orDeviceSynchronize();
  usleep(10000);
  const auto used = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
  };
  const double before = used();
  usleep(300000);
  EXPECT_LT(used() - before, 60) << "milliseconds of processor time in 300";
}

}  // namespace
