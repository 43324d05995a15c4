// SPDX-License-Identifier: BSD-3-Clause
// Programs of random calls of the driver, judged by a model on the host.
//
//   fuzz-driver SEED SECONDS [THREADS]
//
// A call is right, or one of its arguments is wrong: a handle that is stale or
// invented, memory that is freed, a size past the end, a device that does not
// exist. A right call must succeed, and a wrong one must return the code of
// openreg.h with a sentence, and change nothing. The bytes of all blocks are
// compared with the model, and nothing is left at the end.
#include "model.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

size_t freeBytes() {
  size_t free = 0, total = 0;
  orMemGetInfo(&free, &total);
  return free;
}

/// Runs programs with the seeds `first`, `first + step` ... until the time is
/// over.
void run(uint64_t first, uint64_t step, Clock::time_point end,
         std::atomic<uint64_t>& programs, std::atomic<uint64_t>& calls) {
  for (uint64_t seed = first; Clock::now() < end; seed += step) {
    Program program(seed, step == 1);
    program.run();
    ++programs;
    calls += program.calls();
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 3 || count > 4) {
    std::fprintf(stderr, "usage: fuzz-driver SEED SECONDS [THREADS]\n");
    return 2;
  }
  const uint64_t seed = std::strtoull(words[1], nullptr, 10);
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(words[2]));
  const uint64_t threads = count > 3 ? std::strtoull(words[3], nullptr, 10) : 1;
  const size_t before = freeBytes();
  std::atomic<uint64_t> programs{0}, calls{0};
  std::vector<std::thread> all;
  for (uint64_t thread = 0; thread < threads; ++thread) {
    all.emplace_back(
        [&, thread] { run(seed + thread, threads, end, programs, calls); });
  }
  for (std::thread& thread : all) thread.join();
  if (freeBytes() != before) {
    std::fprintf(stderr, "%zu bytes of device memory are lost.\n",
                 before - freeBytes());
    return 1;
  }
  std::printf("%llu programs, %llu calls from seed %llu, nothing wrong\n",
              static_cast<unsigned long long>(programs),
              static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(seed));
}
