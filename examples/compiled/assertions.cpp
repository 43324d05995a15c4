// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/compiled/assertions.h"

#include "torch_openreg/common/check.h"

#include <atomic>
#include <string>
#include <utility>

namespace openreg {
namespace {

// [compiled.assertions.record] The memory is pinned, so that the host reads it without a copy, and never freed.
std::atomic<AssertionRecord*> the_record{nullptr};

AssertionRecord* makeRecord() {
  void* memory = nullptr;
  check(orMallocHost(&memory, sizeof(AssertionRecord)));
  the_record = new (memory) AssertionRecord{};
  return the_record;
}

thread_local std::string sentence;
/// As the driver counts them: a thread that leaves refusals leaves assertions.
thread_local int leaves_refusals = 0;

// [compiled.assertions.report] The host has the words; the kernel has only left the values.
std::string describe(const AssertionRecord& record) {
  switch (Assertion(record.assertion)) {
    case kIndexInRange:
      return "A kernel met index " + std::to_string(record.values[0]) +
             ", which is out of range for " + std::to_string(record.values[1]) +
             " elements.";
  }
  return {};  // Then the driver has a sentence for the code.
}

/// What a call that has waited returns: its own error before that of a kernel.
orError_t reported(orError_t error) noexcept {
  AssertionRecord* const record = the_record;
  if (error || !record || leaves_refusals) return error;
  std::atomic_ref<int32_t> state(record->state);
  // Several threads may have waited for the kernel; one of them reports it.
  int32_t written = kWritten;
  if (!state.compare_exchange_strong(written, kBeingWritten)) return error;
  sentence = describe(*record);
  state = kNothingFailed;
  return orErrorKernelRefused;
}

}  // namespace

AssertionRecord* assertionRecord() {
  static AssertionRecord* const record = makeRecord();
  return record;
}

}  // namespace openreg

// [compiled.assertions.wrap] The linker sends the backend's calls of these functions here, and `__real_` leads on to the driver.
extern "C" {
orError_t __real_orStreamSynchronize(orStream_t) noexcept;
orError_t __real_orEventSynchronize(orEvent_t) noexcept;
orError_t __real_orDeviceSynchronize() noexcept;
orError_t __real_orMemcpyAsync(void*, const void*, size_t, orMemcpyKind,
                               orStream_t) noexcept;
orError_t __real_orLeaveRefusals(int) noexcept;
const char* __real_orGetErrorDetail() noexcept;

orError_t __wrap_orStreamSynchronize(orStream_t stream) noexcept {
  return openreg::reported(__real_orStreamSynchronize(stream));
}

orError_t __wrap_orEventSynchronize(orEvent_t event) noexcept {
  return openreg::reported(__real_orEventSynchronize(event));
}

orError_t __wrap_orDeviceSynchronize() noexcept {
  return openreg::reported(__real_orDeviceSynchronize());
}

// [compiled.assertions.copy] A copy to pageable memory waits too, and is how most programs read a result.
orError_t __wrap_orMemcpyAsync(void* to, const void* from, size_t count,
                               orMemcpyKind kind, orStream_t stream) noexcept {
  const orError_t error = __real_orMemcpyAsync(to, from, count, kind, stream);
  return kind == orMemcpyDeviceToHost ? openreg::reported(error) : error;
}

// [compiled.assertions.leave] A destructor has nobody to tell, and leaves the assertion to the next call that waits.
orError_t __wrap_orLeaveRefusals(int is_on) noexcept {
  openreg::leaves_refusals += is_on ? 1 : -1;
  return __real_orLeaveRefusals(is_on);
}

// [compiled.assertions.text] The text that is asked for next on this thread is that of the assertion.
const char* __wrap_orGetErrorDetail() noexcept {
  static thread_local std::string shown;
  shown = std::exchange(openreg::sentence, {});
  return shown.empty() ? __real_orGetErrorDetail() : shown.c_str();
}
}

// [-]
