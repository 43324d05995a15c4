// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <fenv.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(Threads, two_streams_run_at_a_time) {
  Stream a, b;
  std::atomic<bool> a_runs{false}, b_runs{false};
  enqueue(a, [&] {
    a_runs = true;
    while (!b_runs) usleep(10);
  });
  enqueue(b, [&] {
    b_runs = true;
    while (!a_runs) usleep(10);
  });
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Threads, the_more_urgent_stream_goes_first) {
  std::vector<Stream> holders(2);
  std::atomic<int> held{0};
  std::atomic<bool> go{false};
  for (auto& holder : holders) {
    enqueue(holder, [&] {
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
  enqueue(low, note('l'));
  enqueue(low, note('l'));
  enqueue(low, note('l'));
  enqueue(high, note('h'));
  go = true;
  orDeviceSynchronize();
  EXPECT_NE(order.substr(0, 2).find('h'), std::string::npos) << order;
}

TEST(Threads, a_busy_stream_makes_room_for_a_more_urgent_one) {
  std::vector<Stream> busy(2);
  std::atomic<int> held{0}, done{0}, done_before{-1};
  std::atomic<bool> go{false};
  for (auto& stream : busy) {
    enqueue(stream, [&] {
      ++held;
      while (!go) usleep(10);
    });
    for (int i = 0; i < 30; ++i) {
      enqueue(stream, [&] {
        ++done;
        usleep(1000);
      });
    }
  }
  while (held < 2) usleep(10);
  Stream urgent(-2);
  enqueue(urgent, [&] { done_before = done.load(); });
  go = true;
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_LT(done_before, 10);
}

TEST(Threads, a_host_that_runs_ahead_waits_at_last) {
  Stream stream;
  std::atomic<bool> go{false};
  std::atomic<int> launched{0};
  enqueue(stream, until(go));
  std::thread host([&] {
    for (; launched < 10000; ++launched) enqueue(stream, [] {});
  });
  usleep(50000);
  EXPECT_LT(launched, 5000);
  go = true;
  host.join();
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

// The queue lays its commands out behind each other, in chunks of 8 KiB.
TEST(Threads, a_host_that_ran_ahead_once_does_not_spread_its_later_launches) {
  static std::vector<std::uintptr_t> places;
  static const orKernel kernel{
      "place", 1, [](void*, void*) {},
      [](void* arguments) {
        places.push_back(reinterpret_cast<std::uintptr_t>(arguments));
      },
      [](void*) {}};
  places.clear();
  Stream stream;
  std::atomic<bool> go{false};
  enqueue(stream, until(go));
  for (int i = 0; i < 4000; ++i) {
    orLaunchCommand(&kernel, nullptr, nullptr, stream);
  }
  go = true;
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  const std::set<std::uintptr_t> burst(places.begin(), places.end());
  EXPECT_EQ(burst.size(), 4000);
  places.clear();
  for (int i = 0; i < 4000; ++i) {
    orLaunchCommand(&kernel, nullptr, nullptr, stream);
    if (i % 10 == 9) orStreamSynchronize(stream);
  }
  const std::set<std::uintptr_t> later(places.begin(), places.end());
  EXPECT_LT(later.size(), 400);
}

TEST(Threads, a_query_does_not_wait_for_a_host_that_waits_for_room) {
  Stream stream;
  Event event;
  std::atomic<bool> go{false};
  std::atomic<int> recorded{0};
  enqueue(stream, until(go));
  std::thread host([&] {
    for (; recorded < 10000; ++recorded) orEventRecord(event, stream);
  });
  while (recorded < 4000) usleep(10);
  usleep(20000);  // Now the next recording waits for room.
  std::thread release([&] {
    usleep(300000);
    go = true;
  });
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  float ms;
  EXPECT_EQ(orEventElapsedTime(&ms, event, event), orErrorNotReady);
  EXPECT_FALSE(go) << "a query has waited";
  host.join();
  release.join();
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Threads, the_devices_threads_may_run_on_every_core) {
  cpu_set_t host, device;
  sched_getaffinity(0, sizeof(host), &host);
  enqueue(nullptr, [&] { sched_getaffinity(0, sizeof(device), &device); });
  orStreamSynchronize(nullptr);
  EXPECT_TRUE(CPU_EQUAL(&host, &device));
}

TEST(Threads, have_floating_point_modes_of_their_own) {
  if (ranAgain(under({"", "seed:1"}))) return;
  fesetround(FE_DOWNWARD);
  double device[2] = {}, host[2] = {};
  const auto tenth = [](double* to) {
    volatile double one = 1, ten = 10;
    *to = one / ten;  // Rounded up, if to nearest.
  };
  enqueue(nullptr, [&] { tenth(&device[0]); });
  orStreamSynchronize(nullptr);
  tenth(&host[0]);
  fesetround(FE_TONEAREST);
  enqueue(nullptr, [&] { tenth(&device[1]); });
  orStreamSynchronize(nullptr);
  tenth(&host[1]);
  EXPECT_LT(host[0], host[1]);  // The host keeps its own.
  EXPECT_EQ(device[0], host[1]);
  EXPECT_EQ(device[1], host[1]);
}

TEST(Threads, that_help_with_a_copy_need_a_core) {
  if (ranAgain({{}})) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  void *from, *to;
  ASSERT_EQ(orMalloc(&from, 4 << 20), orSuccess);
  ASSERT_EQ(orMalloc(&to, 4 << 20), orSuccess);
  ASSERT_EQ(orMemcpy(to, from, 4 << 20, orMemcpyDeviceToDevice), orSuccess);
  for (auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(thread.path() / "comm") >> name;
    EXPECT_NE(name, "openreg/copy");
  }
}

TEST(Threads, an_idle_device_uses_no_processor_time) {
  enqueue(nullptr, [] {});
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
