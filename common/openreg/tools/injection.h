// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace openreg::hardware {

// [common.injection.fault] A fault is a set of counts, and a count from which every call fails.
struct Fault {
  static constexpr uint64_t kNever = ~uint64_t{0};

  std::set<uint64_t> at;
  uint64_t from = kNever;
  uint64_t calls = 0;

  /// Counts a call; whether it must fail.
  bool due() { return ++calls >= from || at.erase(calls) > 0; }
  bool isEmpty() const { return at.empty() && from == kNever; }
};

struct Faults {
  Fault allocation, copy, launch, creation;
  std::map<int, Fault> lost;
};

/// Parses an order of the form that openreg_tools.h describes, for a machine of
/// `device_count` devices. Returns an empty string, or a sentence that names
/// the part that cannot be read; then `faults` stays as it is.
std::string parse(const char* order, int device_count, Faults* faults);

// [common.injection] Nothing is counted unless a fault is scheduled.
class Injection {
 public:
  /// Replaces all faults, and counts from 0 again.
  void set(Faults faults);

  /// Counts an allocation, copy or creation; whether it must fail.
  bool failsAllocation() { return isArmed() && due(faults_.allocation); }
  bool failsCopy() { return isArmed() && due(faults_.copy); }
  bool failsCreation() { return isArmed() && due(faults_.creation); }
  /// Counts a launch. Returns why it must fail, or null.
  const char* launchFault() {
    return isArmed() && due(faults_.launch)
               ? "a launch was made to fail, by order"
               : nullptr;
  }
  /// Counts a kernel or copy of `device`; whether the device is lost at it.
  bool losesDevice(int device);

 private:
  bool isArmed() const { return armed_.load(std::memory_order_relaxed); }
  bool due(Fault& fault);

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
