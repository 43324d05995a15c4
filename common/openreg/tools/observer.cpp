// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/observer.h"

#include "torch_openreg/common/openreg/core/lookup.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

namespace openreg::hardware {

// [common.observer.add] An observer sees what gets a number after it was added to the list.
orObserver_t Observers::add(orObserve observe, void* data) {
  std::unique_lock lock(mutex_);
  is_observed = true;
  const auto handle = reinterpret_cast<orObserver_t>(++last_handle_);
  observers_.push_back({observe, data, last_.load(), handle});
  return handle;
}

bool Observers::remove(orObserver_t observer) {
  // A thread that reported during the fork has left the lock locked.
  if (orIsForked()) return true;
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(
      observers_.begin(), observers_.end(),
      [&](const orObserver& each) { return each.handle == observer; });
  if (found == observers_.end()) return false;
  observers_.erase(found);
  is_observed = !observers_.empty();
  return true;
}

// [common.observer.report] Threads report at the same time; only adding and removing excludes them.
void Observers::report(uint64_t number, const orRecord& record) {
  std::shared_lock lock(mutex_);
  for (const orObserver& observer : observers_) {
    if (number > observer.last_before) observer.observe(&record, observer.data);
  }
}

Observers& observers() {
  static Observers& observers = *new Observers;
  return observers;
}

// [common.observer.enqueue] What a command copies or sets is known to the call that enqueues it.
static thread_local ObservedCall* outermost_call = nullptr;

int64_t steadyNanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Traced describeCall() {
  if (!outermost_call) return {};
  const orRecord& call = outermost_call->record_;
  return {0, call.operation, call.direction, call.bytes};
}

Traced Observers::enqueue() {
  Traced traced = describeCall();
  traced.correlation = nextNumber();
  traced.enqueued = steadyNanoseconds();
  return traced;
}

void Observers::enqueued(const Traced& traced, const char* name, int device,
                         orStream_t stream) {
  if (outermost_call) {
    orRecord& call = outermost_call->record_;
    call.correlation = traced.correlation;
    call.device = device;
    call.stream = stream;
  }
  report(traced.correlation,
         {orCommandEnqueued, traced.operation, traced.correlation, name, device,
          stream, traced.bytes, traced.direction, nullptr, traced.enqueued,
          traced.enqueued});
}

// [common.observer.run] A wait that parks its stream has begun already when the stream comes back.
void Observers::begin(Traced& traced, const char* name, int device,
                      orStream_t stream) {
  if (traced.begin) return;
  traced.begin = steadyNanoseconds();
  report(traced.correlation,
         {orCommandBegins, traced.operation, traced.correlation, name, device,
          stream, traced.bytes, traced.direction, nullptr, traced.begin,
          traced.begin});
}

void Observers::end(const Traced& traced, const char* name, int device,
                    orStream_t stream) {
  report(traced.correlation,
         {orCommandEnds, traced.operation, traced.correlation, name, device,
          stream, traced.bytes, traced.direction, nullptr, traced.begin,
          steadyNanoseconds()});
}

// [common.observer.call.report] A function that calls another one of the driver is reported once.
void ObservedCall::open(const char* function, orOperation operation,
                        size_t bytes, int direction) {
  if (outermost_call) return;
  outermost_call = this;
  number_ = observers().nextNumber();
  record_ = {orCallReturns,
             operation,
             0,
             function,
             currentIndex(),
             nullptr,
             bytes,
             direction,
             nullptr,
             steadyNanoseconds(),
             0};
}

void ObservedCall::close() {
  outermost_call = nullptr;
  record_.end = steadyNanoseconds();
  observers().report(number_, record_);
}

// [common.observer.range] A range that began unobserved has no number, and ends unreported.
namespace {

struct MarkedRange {
  std::string name;
  uint64_t number;
  int64_t begin;
};

thread_local std::vector<MarkedRange> marked_ranges;

}  // namespace

void pushRange(const char* name) {
  MarkedRange range{name ? name : "", 0, 0};
  if (isObserved()) {
    range.number = observers().nextNumber();
    range.begin = steadyNanoseconds();
  }
  marked_ranges.push_back(std::move(range));
}

bool popRange() {
  if (marked_ranges.empty()) return false;
  const MarkedRange range = std::move(marked_ranges.back());
  marked_ranges.pop_back();
  if (range.number && isObserved()) {
    observers().report(
        range.number,
        {orRangeEnds, orOperationRange, 0, range.name.c_str(), currentIndex(),
         nullptr, 0, -1, nullptr, range.begin, steadyNanoseconds()});
  }
  return true;
}

// [-]
}  // namespace openreg::hardware
