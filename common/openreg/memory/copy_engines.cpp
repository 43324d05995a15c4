// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/copy_engines.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/worker_pool.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <mutex>
#include <new>

// [common.copy-engines.x86] Only x86 has the header of its streaming stores.
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace openreg::hardware {
namespace {

// [common.copy-engines.job] Threads take the next piece of a copy, so a helper that wakes late costs nothing.
constexpr size_t kSharedBytes = size_t{1} << 20;
constexpr size_t kPieceBytes = size_t{1} << 20;

struct Job {
  char* to;
  const char* from;
  size_t size;
  size_t taken = 0;
  int helpers = 0;
};

// [common.copy-engines.bypass] A large copy would read each cache line of its target before writing it, so it bypasses the caches.
constexpr size_t kBypassBytes = size_t{32} << 20;

/// Copies a piece of a copy of `total` bytes.
void copyPiece(char* to, const char* from, size_t size,
               [[maybe_unused]] size_t total) {
// The sanitizers do not see these stores.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
  const bool is_aligned = reinterpret_cast<uintptr_t>(to) % 16 == 0;
  if (total >= kBypassBytes && is_aligned) {
    for (; size >= 64; size -= 64, to += 64, from += 64) {
      for (size_t i = 0; i < 64; i += 16) {
        const auto* part = reinterpret_cast<const __m128i*>(from + i);
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(part));
      }
    }
    _mm_sfence();
  }
#endif
  std::memcpy(to, from, size);
}

// [common.copy-engines.state] Helpers sleep while there is no large copy, and serve the copies of all devices.
class CopyEngines {
 public:
  void copy(Job job);

 private:
  void start();
  void help();
  void work(Job& job, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable added_, helped_;
  std::list<Job*> jobs_;
  bool started_ = false;
};

// [common.copy-engines.start] If a helper cannot start, those that did, or the caller alone, do the work.
void CopyEngines::start() {
  started_ = true;
  cpu_set_t cores;
  const int count =
      sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const int threads = std::min(count, std::max(4, config().device_threads));
  try {
    for (int helper = 1; helper < threads; ++helper) {
      startDeviceThread("openreg/copy", [this] { help(); });
    }
  } catch (const std::exception&) {
  }
}

void CopyEngines::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return !jobs_.empty(); });
    Job& job = *jobs_.front();
    ++job.helpers;
    work(job, lock);
    --job.helpers;
    helped_.notify_all();
  }
}

// [common.copy-engines.copy] The caller works, too, and waits for helpers that have not finished their pieces.
void CopyEngines::work(Job& job, std::unique_lock<std::mutex>& lock) {
  while (job.taken < job.size) {
    const size_t begin = job.taken;
    const size_t size = std::min(kPieceBytes, job.size - begin);
    job.taken += size;
    if (job.taken == job.size) jobs_.remove(&job);
    lock.unlock();
    copyPiece(job.to + begin, job.from + begin, size, job.size);
    lock.lock();
  }
}

void CopyEngines::copy(Job job) {
  std::unique_lock lock(mutex_);
  if (!started_) start();
  jobs_.push_back(&job);
  added_.notify_all();
  work(job, lock);
  helped_.wait(lock, [&] { return job.helpers == 0; });
}

// [-]
}  // namespace

// [common.copy-engines.share] Pieces of an overlapping copy would depend on each other, so it is not shared.
void copyBytes(void* to, const void* from, size_t size) {
  const auto target = reinterpret_cast<uintptr_t>(to);
  const auto origin = reinterpret_cast<uintptr_t>(from);
  const size_t distance = target > origin ? target - origin : origin - target;
  // What another thread touches would not be known as this command's.
  if (size <= kSharedBytes || distance < size || config().guards_memory) {
    std::memmove(to, from, size);
    return;
  }
  try {
    // Never destroyed, because its threads outlive every destructor.
    static CopyEngines& engines = *new CopyEngines;
    engines.copy(
        {static_cast<char*>(to), static_cast<const char*>(from), size});
  } catch (const std::bad_alloc&) {
    // There was no memory to ask for help, so nothing is copied yet.
    std::memmove(to, from, size);
  }
}

// [-]
}  // namespace openreg::hardware
