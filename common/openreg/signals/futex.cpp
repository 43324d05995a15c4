// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/signals/futex.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace openreg::hardware {

// [common.futex.wake] Words are shared with other processes, so no call may say that they are private.
void wakeAll(uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool FutexSet::add(uint32_t* word, uint32_t found) {
  if (count_ == words_.size()) return false;
  futex_waitv& entry = words_[count_++];
  entry = {};
  entry.val = found;
  entry.uaddr = reinterpret_cast<uintptr_t>(word);
  entry.flags = FUTEX_32;
  return true;
}

// [common.futex.sleep] Linux has the call since 5.16, and a sandbox may forbid it.
static std::atomic<bool> has_waitv{true};

static timespec split(std::chrono::nanoseconds time) {
  constexpr int64_t kSecond = 1'000'000'000;
  return {time.count() / kSecond, time.count() % kSecond};
}

void FutexSet::sleep(std::chrono::nanoseconds most) {
  if (has_waitv) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const timespec until = split(most + std::chrono::seconds(now.tv_sec) +
                                 std::chrono::nanoseconds(now.tv_nsec));
    const long result = syscall(SYS_futex_waitv, words_.data(), count_, 0,
                                &until, CLOCK_MONOTONIC);
    if (result >= 0 || (errno != ENOSYS && errno != EPERM)) return;
    has_waitv = false;
  }
  if (count_ > 1) most = std::min(most, std::chrono::nanoseconds(1'000'000));
  const timespec time = split(most);
  syscall(SYS_futex, words_[0].uaddr, FUTEX_WAIT, words_[0].val, &time, nullptr,
          0);
}

// [-]
}  // namespace openreg::hardware
