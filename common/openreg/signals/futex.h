// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <linux/futex.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace openreg::hardware {

// [common.futex] A futex lets a thread sleep until another one, of any process, says that a word has changed.
/// The number at `word`, and all that was written before it.
inline uint32_t load(uint32_t* word) {
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}
/// Wakes the threads of all processes that sleep on `word`.
void wakeAll(uint32_t* word);

// [common.futex.set] One system call sleeps on up to 128 words.
/// Words, each with the number that a thread has found there.
class FutexSet {
 public:
  /// Whether there was room.
  bool add(uint32_t* word, uint32_t found);
  /// Sleeps until a word of the set is woken or has another number than was
  /// found, or for `most`. Where the system lacks the call, a thread sleeps on
  /// the first word only, and for a millisecond.
  void sleep(std::chrono::nanoseconds most);

 private:
  size_t count_ = 0;
  std::array<futex_waitv, FUTEX_WAITV_MAX> words_;
};

// [-]
}  // namespace openreg::hardware
