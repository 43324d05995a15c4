// SPDX-License-Identifier: BSD-3-Clause
// What the simulated device costs: launches, and how they grow with streams
// and with a queue.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include "measure.h"

#include <time.h>

#include <atomic>
#include <thread>

namespace {

/// A stream that is held, so that a launch finds a busy device and wakes
/// nobody.
struct Held {
  Held() {
    orStreamCreate(&stream);
    hold();
  }
  ~Held() { release(); }
  void hold() {
    go = false;
    openreg::launch(stream, "hold", [this] {
      while (!go) std::this_thread::yield();
    });
  }
  void release() {
    go = true;
    orStreamSynchronize(stream);
  }

  orStream_t stream;
  std::atomic<bool> go;
};

void launches() {
  orEvent_t event;
  orEventCreateWithFlags(&event, orEventDisableTiming);
  Held held;
  orStream_t other;
  orStreamCreate(&other);
  const auto whileBusy = [&](const std::function<void()>& call) {
    return [&held, call] {
      const double us = perCall(2000, call);
      held.release();
      held.hold();
      return us;
    };
  };
  const auto empty = [&] { openreg::launch(held.stream, "empty", [] {}); };
  compare("the driver's calls", "launch, device busy", 15,
          {{"openreg", whileBusy(empty)}});
  compare("the driver's calls", "record an event, device busy", 15,
          {{"openreg", whileBusy([&] { orEventRecord(event, held.stream); })}});
  compare(
      "the driver's calls", "wait for an event, device busy", 15,
      {{"openreg", whileBusy([&] { orStreamWaitEvent(other, event, 0); })}});
  held.release();
  const auto wait = [&] {
    empty();
    orStreamSynchronize(held.stream);
  };
  compare("the driver's calls", "launch and synchronize, device just idle", 15,
          {{"openreg", [&] { return perCall(2000, wait); }}});
  compare("the driver's calls", "launch and synchronize, device asleep", 101,
          {{"openreg", [&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
              return perCall(1, wait);
            }}});
}

void firstTouch() {
  const size_t bytes = 256 << 20;
  const auto set = [](void* pointer) {
    return perCall(1, [&] { orMemset(pointer, 1, bytes); });
  };
  void* kept;
  orMalloc(&kept, bytes);
  compare("the driver's calls", "orMemset of 256 MiB", 5,
          {{"used before", [&] { return set(kept); }},
           {"first touch", [&] {
              void* pointer;
              orMalloc(&pointer, bytes);
              const double us = set(pointer);
              orFree(pointer);
              return us;
            }}});
  orFree(kept);
}

/// Microseconds of processor time that this thread has used.
double threadTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

/// Kernels that compute for 20 us, on several streams in turn. The time is
/// that of one kernel until all have ended.
void streams() {
  const auto kernel = [] {
    const double end = threadTime() + 20;
    while (threadTime() < end) {
    }
  };
  for (const int count : {1, 2, 4, 8}) {
    std::vector<orStream_t> all(count);
    for (orStream_t& stream : all) orStreamCreate(&stream);
    const auto run = [&] {
      const double began = now();
      for (int i = 0; i < 800; ++i)
        openreg::launch(all[i % count], "kernel", kernel);
      orDeviceSynchronize();
      return (now() - began) / 800;
    };
    compare("kernels on streams", std::to_string(count), 9, {{"openreg", run}},
            "\"at\": " + std::to_string(count) + ", ");
    for (const orStream_t stream : all) orStreamDestroy(stream);
  }
}

/// The device is held for a tenth of a second, and the host launches: when the
/// queue is full, it waits.
void pending() {
  for (const int count : {1000, 4000, 10000, 100000}) {
    const auto enqueue = [&] {
      orStream_t stream;
      orStreamCreate(&stream);
      openreg::launch(stream, "hold", [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      });
      const double us =
          perCall(count, [&] { openreg::launch(stream, "empty", [] {}); });
      orStreamSynchronize(stream);
      orStreamDestroy(stream);
      return us;
    };
    compare("launches that wait", std::to_string(count), 5,
            {{"openreg", enqueue}}, "\"at\": " + std::to_string(count) + ", ");
  }
}

}  // namespace

int main() {
  launches();
  firstTouch();
  streams();
  pending();
}
