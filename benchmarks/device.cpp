// SPDX-License-Identifier: BSD-3-Clause
// What the simulated device costs, and what the processor costs, in one run.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

double now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Microseconds of one call: the median of nine rounds of `count` calls.
double cost(
    int count, const std::function<void()>& call,
    const std::function<void()>& after = [] {}) {
  std::vector<double> rounds;
  for (int round = 0; round < 9; ++round) {
    const double begin = now();
    for (int i = 0; i < count; ++i) call();
    rounds.push_back((now() - begin) / count);
    after();
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[4];
}

void row(const char* what, double us) {
  std::printf("%-44s %10.3f us\n", what, us);
}

void launches() {
  orStream_t stream;
  orStreamCreate(&stream);
  std::atomic<bool> go{false};
  // Busy: the device has work, so that a launch wakes nobody.
  const auto hold = [&] {
    orStreamSynchronize(stream);
    go = false;
    openreg::launch(stream, "hold", [&] {
      while (!go) std::this_thread::yield();
    });
  };
  const auto release = [&] {
    go = true;
    hold();
  };
  hold();
  row("launch, device busy",
      cost(
          2000, [&] { openreg::launch(stream, "nothing", [] {}); }, release));
  orEvent_t event;
  orEventCreateWithFlags(&event, orEventDisableTiming);
  row("record an event, device busy",
      cost(
          2000, [&] { orEventRecord(event, stream); }, release));
  orStream_t other;
  orStreamCreate(&other);
  row("wait for an event, device busy",
      cost(
          2000, [&] { orStreamWaitEvent(other, event, 0); }, release));
  go = true;
  orDeviceSynchronize();
  row("launch and synchronize, device just idle", cost(2000, [&] {
        openreg::launch(stream, "nothing", [] {});
        orStreamSynchronize(stream);
      }));
  std::vector<double> woken;
  for (int i = 0; i < 101; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const double begin = now();
    openreg::launch(stream, "nothing", [] {});
    orStreamSynchronize(stream);
    woken.push_back(now() - begin);
  }
  std::sort(woken.begin(), woken.end());
  row("launch and synchronize, device asleep", woken[50]);
}

void allocations() {
  void* pointer;
  row("orMalloc and orFree, 4 KiB", cost(2000, [&] {
        orMalloc(&pointer, 4096);
        orFree(pointer);
      }));
  row("orMalloc and orFree, 64 MiB", cost(200, [&] {
        orMalloc(&pointer, 64 << 20);
        orFree(pointer);
      }));
}

void copies(size_t bytes, const char* size) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  void *pinned, *pinned_too, *a, *b;
  orMallocHost(&pinned, bytes);
  orMallocHost(&pinned_too, bytes);
  std::memset(pinned_too, 4, bytes);
  std::memset(pinned, 3, bytes);
  orMalloc(&a, bytes);
  orMalloc(&b, bytes);
  const int count = static_cast<int>(
      std::max<size_t>(2, std::min<size_t>(2000, (size_t{256} << 20) / bytes)));
  orMemset(a, 0, bytes);
  orMemset(b, 0, bytes);
  const double host =
      cost(count, [&] { std::memcpy(to.data(), from.data(), bytes); });
  const auto share = [&](const char* what, void* dst, const void* src,
                         orMemcpyKind kind) {
    // A queue of copies, as a program has; pageable ones wait of themselves.
    const double us = cost(1,
                           [&] {
                             for (int i = 0; i < count; ++i) {
                               orMemcpyAsync(dst, src, bytes, kind, nullptr);
                             }
                             orStreamSynchronize(nullptr);
                           }) /
                      count;
    std::printf("  %-8s %-28s %12.2f us  %5.2f of memcpy's speed\n", size, what,
                us, host / us);
  };
  std::printf("  %-8s %-28s %12.2f us\n", size, "memcpy on the host", host);
  share("host to host, pinned", pinned, pinned_too, orMemcpyHostToHost);
  share("host to device, pageable", a, from.data(), orMemcpyHostToDevice);
  share("host to device, pinned", a, pinned, orMemcpyHostToDevice);
  share("device to host, pageable", to.data(), a, orMemcpyDeviceToHost);
  share("device to host, pinned", pinned, a, orMemcpyDeviceToHost);
  share("device to device", b, a, orMemcpyDeviceToDevice);
  orFree(a);
  orFree(b);
  orFreeHost(pinned);
  orFreeHost(pinned_too);
}

void firstTouch() {
  const size_t bytes = 256 << 20;
  void* pointer;
  orMalloc(&pointer, bytes);
  double begin = now();
  orMemset(pointer, 1, bytes);
  const double first = now() - begin;
  begin = now();
  orMemset(pointer, 2, bytes);
  std::printf("  256 MiB, first touch %.0f us, then %.0f us\n", first,
              now() - begin);
  orFree(pointer);
}

}  // namespace

int main() {
  launches();
  allocations();
  std::printf("copies, on memory that was used before\n");
  copies(1 << 10, "1 KiB");
  copies(1 << 20, "1 MiB");
  copies(256 << 20, "256 MiB");
  firstTouch();
}
