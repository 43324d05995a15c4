// SPDX-License-Identifier: BSD-3-Clause
// What observers of the driver see, and what they never see.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Seen {
  std::string name;
  orRecord record;
};

/// Observes while it lives.
class Watch {
 public:
  Watch() {
    EXPECT_EQ(orAddObserver(
                  &observer_,
                  [](const orRecord* record, void* data) {
                    auto* watch = static_cast<Watch*>(data);
                    std::lock_guard lock(watch->mutex_);
                    watch->all_.push_back({record->name, *record});
                  },
                  this),
              orSuccess);
  }
  ~Watch() { stop(); }
  void stop() {
    if (!observer_) return;
    EXPECT_EQ(orRemoveObserver(observer_), orSuccess);
    observer_ = nullptr;
  }
  std::vector<Seen> in(orRecordPhase phase) {
    std::lock_guard lock(mutex_);
    std::vector<Seen> found;
    for (const Seen& seen : all_) {
      if (seen.record.phase == phase) found.push_back(seen);
    }
    return found;
  }
  /// Waits for the ends of `count` commands: a synchronization may return
  /// before the last one is reported.
  std::vector<Seen> ends(size_t count) {
    for (int i = 0; i < 5000 && in(orCommandEnds).size() < count; ++i) {
      usleep(1000);
    }
    return in(orCommandEnds);
  }

 private:
  std::mutex mutex_;
  std::vector<Seen> all_;
  orObserver_t observer_ = nullptr;
};

TEST(Observer, a_handle_is_never_given_out_again) {
  const auto observe = [](const orRecord*, void*) {};
  orObserver_t first, second;
  ASSERT_EQ(orAddObserver(&first, observe, nullptr), orSuccess);
  ASSERT_EQ(orRemoveObserver(first), orSuccess);
  ASSERT_EQ(orAddObserver(&second, observe, nullptr), orSuccess);
  EXPECT_EQ(orRemoveObserver(first), orErrorInvalidResourceHandle);
  EXPECT_EQ(orRemoveObserver(second), orSuccess);
}

}  // namespace

TEST(Observer, a_command_is_seen_enqueued_begun_and_ended_under_one_number) {
  Stream stream;
  Watch watch;
  openreg::launch(stream, "add", [] {});
  openreg::launch(stream, "mul", [] {});
  orStreamSynchronize(stream);
  const auto ends = watch.ends(2);
  const auto enqueued = watch.in(orCommandEnqueued);
  const auto begins = watch.in(orCommandBegins);
  ASSERT_EQ(ends.size(), 2u);
  ASSERT_EQ(begins.size(), 2u);
  ASSERT_EQ(enqueued.size(), 2u);
  EXPECT_EQ(enqueued[0].name, "add");
  EXPECT_EQ(enqueued[1].name, "mul");
  EXPECT_LT(enqueued[0].record.correlation, enqueued[1].record.correlation);
  for (size_t i : {0, 1}) {
    const orRecord& end = ends[i].record;
    EXPECT_EQ(end.correlation, enqueued[i].record.correlation);
    EXPECT_EQ(end.begin, begins[i].record.begin);
    EXPECT_LE(enqueued[i].record.begin, end.begin);
    EXPECT_LE(end.begin, end.end);
    EXPECT_EQ(end.operation, orOperationLaunch);
    EXPECT_EQ(end.stream, stream.handle);
    EXPECT_EQ(end.device, 0);
  }
}

/// What another thread asks while an observer is told of a command.
struct Question {
  std::function<void()> ask;
  bool is_answered = false;
};

/// Whether another thread can `ask` while an observer is told of the command
/// that `enqueue` enqueues.
bool isAnswered(std::function<void()> ask,
                const std::function<void()>& enqueue) {
  Question question{std::move(ask)};
  const orObserve observe = [](const orRecord* record, void* data) {
    if (record->phase != orCommandEnqueued) return;
    auto& question = *static_cast<Question*>(data);
    auto answer = std::async(std::launch::async, question.ask);
    question.is_answered =
        answer.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    // Without an answer, the destructor of `answer` would block for good.
    if (!question.is_answered) std::quick_exit(1);
  };
  orObserver_t observer;
  EXPECT_EQ(orAddObserver(&observer, observe, &question), orSuccess);
  enqueue();
  orRemoveObserver(observer);
  return question.is_answered;
}

TEST(Observer, may_wait_for_a_thread_that_asks_about_the_event) {
  Stream stream;
  Event event;
  EXPECT_TRUE(
      isAnswered([&] { orEventQuery(event); },
                 [&] { EXPECT_EQ(orEventRecord(event, stream), orSuccess); }));
}

TEST(Observer, may_wait_for_a_thread_that_asks_about_the_stream) {
  Stream stream;
  int device;
  EXPECT_TRUE(isAnswered([&] { orStreamGetDevice(stream, &device); },
                         [&] { openreg::launch(stream, "add", [] {}); }));
}

TEST(Observer, is_removed_in_a_process_that_was_forked_during_a_report) {
  static std::atomic<bool> is_inside;
  static pid_t parent;
  is_inside = false;
  parent = getpid();
  const orObserve observe = [](const orRecord* record, void*) {
    if (record->phase != orCommandBegins || getpid() != parent) return;
    is_inside = true;
    usleep(200'000);
  };
  orObserver_t observer;
  ASSERT_EQ(orAddObserver(&observer, observe, nullptr), orSuccess);
  openreg::launch(nullptr, "nothing", [] {});
  while (!is_inside) usleep(10);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(orRemoveObserver(observer) == orSuccess ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(orRemoveObserver(observer), orSuccess);
}

TEST(Observer, a_call_says_what_it_enqueued_and_how_long_it_took) {
  Watch watch;
  openreg::launch(nullptr, "sleep", [] { usleep(20000); });
  orDeviceSynchronize();
  const auto calls = watch.in(orCallReturns);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].name, "orLaunchCommand");
  EXPECT_EQ(calls[0].record.correlation,
            watch.in(orCommandEnqueued)[0].record.correlation);
  EXPECT_EQ(calls[1].name, "orDeviceSynchronize");
  EXPECT_EQ(calls[1].record.operation, orOperationSynchronize);
  EXPECT_EQ(calls[1].record.correlation, 0u);
  EXPECT_GE(calls[1].record.end - calls[1].record.begin, 10'000'000);
}

TEST(Observer, copies_and_sets_have_bytes_and_a_copy_has_a_direction) {
  void* block;
  ASSERT_EQ(orMalloc(&block, 4096), orSuccess);
  std::vector<char> host(4096);
  Watch watch;
  orMemcpyAsync(block, host.data(), 4096, orMemcpyHostToDevice, nullptr);
  orMemset(block, 1, 1024);
  orMemcpy(host.data(), block, 512, orMemcpyDeviceToHost);
  const auto ends = watch.ends(3);
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].name, "memcpy");
  EXPECT_EQ(ends[0].record.operation, orOperationCopy);
  EXPECT_EQ(ends[0].record.bytes, 4096u);
  EXPECT_EQ(ends[0].record.direction, orMemcpyHostToDevice);
  EXPECT_EQ(ends[1].name, "memset");
  EXPECT_EQ(ends[1].record.bytes, 1024u);
  EXPECT_EQ(ends[1].record.direction, -1);
  EXPECT_EQ(ends[2].record.bytes, 512u);
  EXPECT_EQ(ends[2].record.direction, orMemcpyDeviceToHost);
  // One call each: what orMemcpy itself calls is not reported again.
  const auto calls = watch.in(orCallReturns);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].name, "orMemcpyAsync");
  EXPECT_EQ(calls[1].name, "orMemset");
  EXPECT_EQ(calls[2].name, "orMemcpy");
  watch.stop();
  orFree(block);
}

TEST(Observer, allocations_and_frees_have_bytes_address_and_device) {
  Watch watch;
  void *block, *pinned;
  ASSERT_EQ(orMalloc(&block, 1000), orSuccess);
  ASSERT_EQ(orMallocHost(&pinned, 2000), orSuccess);
  orFreeHost(pinned);
  orFree(block);
  void* none;
  EXPECT_EQ(orMalloc(&none, size_t{1} << 60), orErrorMemoryAllocation);
  const auto calls = watch.in(orCallReturns);
  ASSERT_EQ(calls.size(), 5u);
  const auto is = [&](size_t i, orOperation operation, const void* pointer,
                      size_t bytes, int device) {
    const orRecord& record = calls[i].record;
    EXPECT_EQ(record.operation, operation) << i;
    EXPECT_EQ(record.pointer, pointer) << i;
    EXPECT_EQ(record.bytes, bytes) << i;
    EXPECT_EQ(record.device, device) << i;
  };
  is(0, orOperationAllocate, block, 1000, 0);
  is(1, orOperationAllocate, pinned, 2000, -1);
  is(2, orOperationFree, pinned, 2000, -1);
  is(3, orOperationFree, block, 1000, 0);
  is(4, orOperationAllocate, nullptr, size_t{1} << 60, 0);
}

TEST(Observer, a_wait_begins_when_its_stream_reaches_it) {
  Stream waits;
  Event event;
  std::atomic<bool> released{false};
  Watch watch;
  openreg::launch(nullptr, "long", until(released));
  orEventRecord(event, nullptr);
  orStreamWaitEvent(waits, event, 0);
  while (watch.in(orCommandBegins).size() < 2) usleep(100);
  usleep(20000);
  released = true;
  orDeviceSynchronize();
  for (const Seen& seen : watch.ends(3)) {
    if (seen.record.operation != orOperationWait) continue;
    EXPECT_EQ(seen.record.stream, waits.handle);
    EXPECT_GE(seen.record.end - seen.record.begin, 10'000'000);
  }
  // Parked and run, but begun once.
  EXPECT_EQ(watch.in(orCommandBegins).size(), 3u);
}

TEST(Observer, a_host_function_and_an_event_are_commands_too) {
  Event event;
  Watch watch;
  orLaunchHostFunc(
      nullptr, [](void*) {}, nullptr);
  orEventRecord(event, nullptr);
  orEventSynchronize(event);
  const auto ends = watch.ends(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].record.operation, orOperationHostFunction);
  EXPECT_EQ(ends[0].name, "host function");
  EXPECT_EQ(ends[1].record.operation, orOperationRecord);
  EXPECT_EQ(watch.in(orCallReturns)[0].name, "orLaunchHostFunc");
}

TEST(Observer, each_of_several_sees_what_began_after_it_was_added) {
  std::atomic<bool> released{false};
  const auto wait = until(released);
  Watch first;
  openreg::launch(nullptr, "first", wait);
  Watch second;
  openreg::launch(nullptr, "second", [] {});
  released = true;
  orDeviceSynchronize();
  ASSERT_EQ(first.ends(2).size(), 2u);
  const auto ends = second.ends(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].name, "second");
  ASSERT_EQ(second.in(orCommandBegins).size(), 1u);
}

TEST(Observer, nothing_is_reported_to_one_that_was_removed) {
  std::atomic<bool> begun{false}, released{false};
  Watch watch;
  Watch other;
  openreg::launch(nullptr, "long", [&] {
    begun = true;
    while (!released) usleep(100);
  });
  while (!begun) usleep(100);
  watch.stop();
  released = true;
  orDeviceSynchronize();
  EXPECT_EQ(other.ends(1).size(), 1u);
  EXPECT_TRUE(watch.in(orCommandEnds).empty());
}

TEST(Observer, ranges_are_seen_by_those_that_saw_them_begin) {
  orRangePush("before");
  Watch watch;
  orRangePush("outer");
  orRangePush(std::string("inner").c_str());
  EXPECT_EQ(orRangePop(), orSuccess);
  EXPECT_EQ(orRangePop(), orSuccess);
  EXPECT_EQ(orRangePop(), orSuccess);
  const auto ranges = watch.in(orRangeEnds);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].name, "inner");
  EXPECT_EQ(ranges[1].name, "outer");
  EXPECT_LE(ranges[1].record.begin, ranges[0].record.begin);
  EXPECT_LE(ranges[0].record.end, ranges[1].record.end);
}

TEST(Observer, a_range_that_ends_unobserved_is_not_reported) {
  Watch watch;
  orRangePush("unfinished");
  watch.stop();
  EXPECT_EQ(orRangePop(), orSuccess);
  EXPECT_TRUE(watch.in(orRangeEnds).empty());
}

TEST(Observer, threads_launch_while_others_come_and_go) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!done) openreg::launch(nullptr, "kernel", [] {});
    });
  }
  for (int i = 0; i < 50; ++i) {
    std::map<uint64_t, int> phases;
    Watch watch;
    usleep(200);
    watch.stop();
    for (const Seen& seen : watch.in(orCommandEnqueued)) {
      ++phases[seen.record.correlation];
    }
    for (const Seen& seen : watch.in(orCommandEnds)) {
      EXPECT_EQ(phases.count(seen.record.correlation), 1u);
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  orDeviceSynchronize();
}

TEST(Observer, a_wait_that_calls_back_is_one_wait) {
  openreg::launch(nullptr, "slow", [] { usleep(50'000); });
  Watch watch;
  int calls = 0;
  const auto count = [](void* calls) {
    ++*static_cast<int*>(calls);
    return 0;
  };
  orSetWaitCallback(5'000'000, count, &calls);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  orSetWaitCallback(0, nullptr, nullptr);
  EXPECT_GE(calls, 1);
  EXPECT_EQ(watch.in(orCallReturns).size(), 1u);
}

TEST(Observer, what_is_missing_is_refused) {
  orObserver_t observer;
  const auto ignore = [](const orRecord*, void*) {};
  const char* needed =
      "orAddObserver needs a place for the observer and a function, not null.";
  EXPECT_EQ(orAddObserver(nullptr, ignore, nullptr), orErrorInvalidValue);
  EXPECT_STREQ(orGetErrorDetail(), needed);
  EXPECT_EQ(orAddObserver(&observer, nullptr, nullptr), orErrorInvalidValue);
  EXPECT_STREQ(orGetErrorDetail(), needed);
  EXPECT_EQ(orRemoveObserver(nullptr), orErrorInvalidResourceHandle);
  EXPECT_STREQ(orGetErrorDetail(),
               "There is no such observer; it was removed, or never added.");
  EXPECT_EQ(orRangePop(), orErrorInvalidValue);
  EXPECT_STREQ(orGetErrorDetail(),
               "orRangePop has no range to end; this thread has begun none, or "
               "has ended all of them.");
}
