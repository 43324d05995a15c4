// SPDX-License-Identifier: BSD-3-Clause
// What the caching allocator costs, and what a program would cost without it.
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/gpu_trace.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

double now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Cost {
  double host;  // until the calls have returned
  double done;  // until the device has nothing left to do
};

// Microseconds of one call: the medians of nine rounds of `count` calls.
Cost cost(int count, const std::function<void()>& call) {
  std::vector<double> host, done;
  for (int round = 0; round < 9; ++round) {
    const double begin = now();
    for (int i = 0; i < count; ++i) call();
    host.push_back((now() - begin) / count);
    orDeviceSynchronize();
    done.push_back((now() - begin) / count);
  }
  std::sort(host.begin(), host.end());
  std::sort(done.begin(), done.end());
  return {host[4], done[4]};
}

void pairs() {
  std::printf("allocate and free, nothing running\n");
  for (const size_t bytes : {16, 4096, 1 << 20, 64 << 20}) {
    const double cached =
        cost(20000, [&] { openreg::allocator().allocate(bytes); }).done;
    const double driver = cost(2000, [&] {
                            void* data;
                            orMalloc(&data, bytes);
                            orFree(data);
                          }).done;
    const double host = cost(20000, [&] {
                          void* data = nullptr;
                          if (posix_memalign(&data, 64, bytes)) std::abort();
                          // The compiler would leave out a pair that nobody
                          // sees.
                          asm volatile("" : : "g"(data) : "memory");
                          std::free(data);
                        }).done;
    std::printf(
        "  %9zu bytes: cached %6.3f us, driver %6.3f us, host's malloc "
        "%6.3f us\n",
        bytes, cached, driver, host);
  }
}

// A cached pair makes two reports to PyTorch's trace, to which nobody listens.
void reports() {
  const double pair =
      cost(20000, [&] { openreg::allocator().allocate(4096); }).done;
  const double report =
      cost(200, [&] {
        for (uintptr_t i = 0; i < 1000; ++i) {
          openreg::trace(&openreg::Traced::trace_gpu_memory_allocation, i);
          asm volatile("" : : : "memory");
        }
      }).host;  // microseconds of 1000: nanoseconds of one
  std::printf(
      "two reports to a trace without listeners: %.2f ns of the %.0f ns of a "
      "cached pair (%.1f%%)\n",
      2 * report, 1000 * pair, 2 * report / (10 * pair));
}

// A chain of operators: each writes a tensor of its own, and the one before it
// is dropped. Each kernel takes 20 us.
void chain() {
  const auto kernel = [] {
    const double end = now() + 20;
    while (now() < end) {
    }
  };
  const Cost cached = cost(100, [&] {
    c10::DataPtr x = openreg::allocator().allocate(4096);
    for (int i = 0; i < 10; ++i) {
      c10::DataPtr y = openreg::allocator().allocate(4096);
      openreg::launch(nullptr, "kernel", kernel);
      x = std::move(y);
    }
  });
  const Cost driver = cost(100, [&] {
    void *x, *y;
    orMalloc(&x, 4096);
    for (int i = 0; i < 10; ++i) {
      orMalloc(&y, 4096);
      openreg::launch(nullptr, "kernel", kernel);
      orFree(x);
      x = y;
    }
    orFree(x);
  });
  std::printf(
      "ten kernels of 20 us, each with a tensor of its own\n"
      "  cached: host %.0f us, done after %.0f us\n"
      "  one orMalloc per tensor: host %.0f us, done after %.0f us\n",
      cached.host, cached.done, driver.host, driver.done);
}

void firstTouch() {
  const size_t bytes = 64 << 20;
  const auto fill = [&](void* data) { orMemset(data, 1, bytes); };
  const double cached = cost(5, [&] {
                          c10::DataPtr data =
                              openreg::allocator().allocate(bytes);
                          fill(data.get());
                        }).done;
  const double driver = cost(5, [&] {
                          void* data;
                          orMalloc(&data, bytes);
                          fill(data);
                          orFree(data);
                        }).done;
  std::printf(
      "64 MiB allocated, filled and freed\n"
      "  cached %.0f us, one orMalloc per tensor %.0f us: %.2f times\n",
      cached, driver, driver / cached);
}

}  // namespace

int main() {
  pairs();
  reports();
  chain();
  firstTouch();
}
