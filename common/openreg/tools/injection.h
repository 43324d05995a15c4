// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace openreg::hardware {

// [common.injection.fault] A fault is a set of counts, and a count from which every call fails.
struct Fault {
  static constexpr uint64_t kNever = ~uint64_t{0};

  std::set<uint64_t> at;
  uint64_t from = kNever;
  uint64_t calls = 0;

  /// Counts a call; whether it must fail.
  bool due() { return ++calls >= from || at.erase(calls) > 0; }
};

/// By kind: `alloc`, `copy`, `launch`, `create`, and `lost:D` for device D.
using Faults = std::map<std::string, Fault, std::less<>>;

/// Parses an order of the form that openreg_tools.h describes, for a machine of
/// `device_count` devices. Returns an empty string, or a sentence that names
/// the part that cannot be read; then `faults` stays as it is.
std::string parse(const char* order, int device_count, Faults* faults);

// [common.injection] Nothing is counted unless a fault is scheduled.
class Injection {
 public:
  explicit Injection(Faults faults) { set(std::move(faults)); }
  /// Replaces all faults, and counts from 0 again.
  void set(Faults faults);

  /// Counts a call of this kind; whether it must fail.
  bool isDue(std::string_view kind) { return isArmed() && count(kind); }
  /// Counts a launch. Returns why it must fail, or null.
  const char* launchFault() {
    return isDue("launch") ? "a launch was made to fail, by order" : nullptr;
  }
  /// Counts a kernel or copy of `device`; whether the device is lost at it.
  bool losesDevice(int device) {
    return isArmed() && count("lost:" + std::to_string(device));
  }

 private:
  bool isArmed() const { return armed_.load(std::memory_order_relaxed); }
  bool count(std::string_view kind);

  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  Faults faults_;
};

/// The faults of the process, which begin with those of OPENREG_INJECT.
Injection& injection();

/// Counts the creation of `what`, such as "a stream".
/// @throws orErrorMemoryAllocation if it must fail.
void countCreation(const char* what);

// [-]
}  // namespace openreg::hardware
