// SPDX-License-Identifier: BSD-3-Clause
// Streams that wait for a number in memory, and streams that write one.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/ipc.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using openreg::launch;
using std::chrono::steady_clock;

/// A block of numbers on the current device that begin at zero.
struct Numbers {
  explicit Numbers(size_t count = 1) {
    EXPECT_EQ(orMalloc(reinterpret_cast<void**>(&at), 4 * count), orSuccess);
    EXPECT_EQ(orMemset(at, 0, 4 * count), orSuccess);
  }
  ~Numbers() { EXPECT_EQ(orFree(at), orSuccess) << detail(); }
  uint32_t* at = nullptr;
};

/// A number in pinned memory.
struct PinnedNumber {
  PinnedNumber() {
    EXPECT_EQ(orMallocHost(reinterpret_cast<void**>(&at), 4), orSuccess);
    *at = 0;
  }
  ~PinnedNumber() { EXPECT_EQ(orFreeHost(at), orSuccess) << detail(); }
  uint32_t* at = nullptr;
};

void expectWait(orStream_t stream, const void* number, uint32_t value) {
  EXPECT_EQ(orStreamWaitValue32(stream, number, value), orSuccess) << detail();
}

void expectWrite(orStream_t stream, void* number, uint32_t value) {
  EXPECT_EQ(orStreamWriteValue32(stream, number, value), orSuccess) << detail();
}

void expectRefused(orError_t error, orError_t code,
                   const std::string& sentence) {
  EXPECT_EQ(error, code);
  EXPECT_NE(detail().find(sentence), std::string::npos) << detail();
}

double secondsSince(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

void sleepMs(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

TEST(Signals, a_stream_waits_until_another_stream_has_written_the_number) {
  Stream waits, writes;
  Numbers number;
  int data = 0, seen = 0;
  expectWait(waits, number.at, 3);
  launch(waits, "read", [&] { seen = data; });
  for (uint32_t value : {1, 2}) expectWrite(writes, number.at, value);
  orStreamSynchronize(writes);
  sleepMs(30);
  EXPECT_EQ(orStreamQuery(waits), orErrorNotReady);
  launch(writes, "write", [&] { data = 7; });
  expectWrite(writes, number.at, 3);
  EXPECT_EQ(orStreamSynchronize(waits), orSuccess) << detail();
  EXPECT_EQ(seen, 7);
}

TEST(Signals, numbers_are_compared_modulo_two_to_the_32) {
  Stream stream;
  Numbers number;
  for (uint32_t start : {0u, 5u, 0x7ffffff0u, 0xfffffff0u}) {
    expectWrite(stream, number.at, start);
    expectWait(stream, number.at, start);
    expectWait(stream, number.at, start - 0x7fffffff);
    EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
    expectWait(stream, number.at, start + 0x7fffffff);
    sleepMs(2);
    EXPECT_EQ(orStreamQuery(stream), orErrorNotReady) << start;
    Stream other;
    expectWrite(other, number.at, start + 0x7fffffff);
    EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  }
}

TEST(Signals, a_wait_compares_when_the_earlier_work_has_run) {
  Stream stream, other;
  Numbers number;
  expectWrite(stream, number.at, 5);
  expectWrite(stream, number.at, 0);
  expectWait(stream, number.at, 5);
  sleepMs(5);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  expectWrite(other, number.at, 5);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Signals, the_host_can_signal_a_number_in_pinned_memory) {
  Stream stream;
  PinnedNumber to_device, to_host;
  for (uint32_t turn = 1; turn <= 100; ++turn) {
    expectWait(stream, to_device.at, turn);
    expectWrite(stream, to_host.at, turn);
    if (turn % 10 == 0) sleepMs(1);
    orSignalValue32(to_device.at, turn);
    std::atomic_ref<uint32_t> answer(*to_host.at);
    while (answer != turn) std::this_thread::yield();
  }
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Signals, a_kernel_can_signal) {
  Stream waits, signals;
  Numbers number;
  expectWait(waits, number.at, 1);
  launch(signals, "signal", [device = openreg::onDevice(number.at)] {
    sleepMs(5);
    orSignalValue32(device, 1);
  });
  EXPECT_EQ(orStreamSynchronize(waits), orSuccess);
}

TEST(Signals, a_stream_can_wait_for_and_write_to_the_memory_of_another_device) {
  Numbers numbers(2);
  orSetDevice(1);
  Stream stream;
  expectWait(stream, numbers.at, 1);
  expectWrite(stream, numbers.at + 1, 2);
  orSetDevice(0);
  expectWrite(nullptr, numbers.at, 1);
  expectWait(nullptr, numbers.at + 1, 2);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
}

TEST(Signals, a_number_that_is_stored_without_a_signal_is_seen) {
  Stream waits, stores;
  Numbers number;
  expectWait(waits, number.at, 1);
  sleepMs(2);
  launch(stores, "store", [at = openreg::onDevice(number.at)] {
    std::atomic_ref(*at).store(1);
  });
  EXPECT_EQ(orStreamSynchronize(waits), orSuccess);
}

TEST(Signals, three_hundred_streams_wait_at_once) {
  constexpr int kStreams = 300;
  Numbers numbers(kStreams + 1);
  std::deque<Stream> streams(kStreams);
  std::atomic<int> ran{0};
  for (int i = 0; i < kStreams; ++i) {
    expectWait(streams[i], numbers.at + i, 1);
    launch(streams[i], "count", [&] { ++ran; });
  }
  sleepMs(50);
  EXPECT_EQ(ran, 0);
  for (int i = 0; i < kStreams; ++i) {
    expectWrite(nullptr, numbers.at + i * 7 % kStreams, 1);
  }
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(ran, kStreams);
}

TEST(Signals, many_streams_can_wait_for_one_number) {
  Numbers number;
  std::deque<Stream> streams(20);
  for (auto& stream : streams) expectWait(stream, number.at, 1);
  sleepMs(5);
  expectWrite(nullptr, number.at, 1);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

// Two streams that play ping-pong, with work in between.
TEST(Signals, streams_play_ping_pong_under_every_schedule) {
  auto one = under({"threads", "blocking", "seed:1", "seed:3"}), two = one;
  for (auto& settings : one) settings.push_back("OPENREG_DEVICE_THREADS=1");
  for (auto& settings : two) settings.push_back("OPENREG_DEVICE_THREADS=2");
  if (ranAgain(one) && ranAgain(two)) return;
  Stream first, second;
  Numbers numbers(2);
  std::string order;
  constexpr uint32_t kTurns = 200;
  for (uint32_t turn = 1; turn <= kTurns; ++turn) {
    launch(first, "one", [&] { order += 'a'; });
    expectWrite(first, numbers.at, turn);
    expectWait(second, numbers.at, turn);
    launch(second, "two", [&] { order += 'b'; });
    expectWrite(second, numbers.at + 1, turn);
    expectWait(first, numbers.at + 1, turn);
  }
  EXPECT_EQ(orDeviceSynchronize(), orSuccess) << detail();
  std::string expected;
  for (uint32_t turn = 0; turn < kTurns; ++turn) expected += "ab";
  EXPECT_EQ(order, expected);
}

TEST(Signals, no_schedule_holds_the_host_until_a_number_is_written) {
  if (ranAgain(under({"threads", "blocking", "seed:1"}))) return;
  PinnedNumber number;
  std::atomic<bool> returned = false;
  std::thread host([&] {
    // The two calls have a long time to return on a slow machine.
    const auto begin = steady_clock::now();
    while (!returned && secondsSince(begin) < 10) sleepMs(1);
    EXPECT_TRUE(returned);
    orSignalValue32(number.at, 1);
  });
  expectWait(nullptr, number.at, 1);
  std::atomic<int> runs{0};
  launch(nullptr, "behind", [&] { ++runs; });
  EXPECT_EQ(runs, 0);
  returned = true;
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(runs, 1);
  host.join();
  launch(nullptr, "later", [&] {
    sleepMs(20);
    ++runs;
  });
  const bool blocks = std::string(getenv("OPENREG_SCHEDULE")) == "blocking";
  EXPECT_EQ(runs == 2, blocks);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Signals, a_failed_device_ends_its_waits_and_drops_what_follows) {
  Stream waits, fails;
  Numbers numbers(2);
  bool ran = false;
  expectWait(waits, numbers.at, 1);
  launch(waits, "after", [&] { ran = true; });
  sleepMs(5);
  launch(fails, "wrong", [] { throw std::runtime_error("no."); });
  EXPECT_EQ(orStreamSynchronize(waits), orErrorLaunchFailure);
  EXPECT_EQ(detail(), "openreg:0 stopped in wrong: no.");
  EXPECT_FALSE(ran);
  EXPECT_EQ(orStreamWaitValue32(waits, numbers.at, 1), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess);
}

TEST(Signals, a_lost_device_ends_its_waits) {
  if (ranAgain({{}})) return;
  Stream waits, other;
  Numbers number;
  expectWait(waits, number.at, 1);
  orInject("lost:0@1");
  EXPECT_EQ(launch(other, "any", [] {}), orErrorDeviceLost);
  EXPECT_EQ(orStreamSynchronize(waits), orErrorDeviceLost);
  EXPECT_EQ(orDeviceReset(), orErrorDeviceLost);
}

TEST(Signals, a_reset_gives_a_wait_one_second) {
  Stream waits, other;
  Numbers number;
  bool ran = false;
  expectWait(waits, number.at, 1);
  launch(waits, "after", [&] { ran = true; });
  const auto begin = steady_clock::now();
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_GE(secondsSince(begin), 0.9);
  EXPECT_LT(secondsSince(begin), 10);
  EXPECT_FALSE(ran);

  expectWait(waits, number.at, 1);
  launch(waits, "after", [&] { ran = true; });
  launch(other, "late", [device = openreg::onDevice(number.at)] {
    sleepMs(20);
    orSignalValue32(device, 1);
  });
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Signals, a_wait_that_a_reset_gives_up_fails_the_device) {
  Numbers number;
  Stream waits;
  expectWait(waits, number.at, 1);
  std::thread resets([] { EXPECT_EQ(orDeviceReset(), orSuccess); });
  // This thread may come before the reset has forgotten the error, or after it.
  const orError_t error = orStreamSynchronize(waits);
  if (error) {
    expectRefused(error, orErrorLaunchFailure,
                  "openreg:0 stopped in wait_value: the number for which a "
                  "stream waited was not written before the reset or the "
                  "exit");
  }
  resets.join();
}

TEST(Signals, a_process_exits_while_a_stream_waits) {
  const auto begin = steady_clock::now();
  if (ranAgain(under({"threads", "seed:1"}))) {
    EXPECT_LT(secondsSince(begin), 10);
    return;
  }
  orStream_t stream;
  orStreamCreate(&stream);
  void* number;
  orMalloc(&number, 4);
  orMemset(number, 0, 4);
  expectWait(stream, number, 1);
  launch(stream, "after", [] { std::_Exit(3); });
}

TEST(Signals, a_stream_that_is_destroyed_keeps_waiting) {
  Numbers number;
  std::atomic<bool> ran{false};
  {
    Stream stream;
    expectWait(stream, number.at, 1);
    launch(stream, "after", [&] { ran = true; });
  }
  sleepMs(5);
  EXPECT_FALSE(ran);
  expectWrite(nullptr, number.at, 1);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Signals, freeing_waits_for_the_streams_that_wait) {
  Stream stream;
  void *block, *pinned;
  ASSERT_EQ(orMalloc(&block, 4), orSuccess);
  ASSERT_EQ(orMallocHost(&pinned, 4), orSuccess);
  PinnedNumber go;
  orMemset(block, 0, 4);
  expectWait(stream, go.at, 1);
  auto frees = std::async(std::launch::async, [&] {
    EXPECT_EQ(orFree(block), orSuccess);
    EXPECT_EQ(orFreeHost(pinned), orSuccess);
  });
  EXPECT_EQ(frees.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  orSignalValue32(go.at, 1);
  frees.get();
}

TEST(Signals, a_capture_records_a_write_and_refuses_a_wait) {
  Stream stream;
  Numbers number;
  const Executable exec =
      executable(stream, [&] { expectWrite(stream, number.at, 9); });
  Stream waits;
  expectWait(waits, number.at, 9);
  EXPECT_EQ(orStreamQuery(waits), orErrorNotReady);
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orStreamSynchronize(waits), orSuccess);

  ASSERT_EQ(orStreamBeginCapture(stream, orStreamCaptureModeGlobal), orSuccess);
  const char* sentence =
      "orStreamWaitValue32 was called for a stream that is being captured, and "
      "a graph runs without waiting; make the call before the capture or after "
      "it.";
  expectRefused(orStreamWaitValue32(stream, number.at, 9),
                orErrorStreamCaptureUnsupported, sentence);
  orGraph_t graph;
  expectRefused(orStreamEndCapture(stream, &graph),
                orErrorStreamCaptureInvalidated, sentence);
  expectWait(stream, number.at, 9);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Signals, an_address_that_is_no_number_is_refused_with_the_reason) {
  Numbers numbers(2);
  char* inside = reinterpret_cast<char*>(numbers.at);
  void *freed, *odd;
  ASSERT_EQ(orMalloc(&freed, 4), orSuccess);
  ASSERT_EQ(orMalloc(&odd, 6), orSuccess);
  ASSERT_EQ(orFree(freed), orSuccess);
  uint32_t host = 0;
  const auto expect = [](void* pointer, const std::string& sentence) {
    expectRefused(orStreamWaitValue32(nullptr, pointer, 0), orErrorInvalidValue,
                  sentence);
    expectRefused(orStreamWriteValue32(nullptr, pointer, 0),
                  orErrorInvalidValue, sentence);
  };
  expect(inside + 2, "A number of 32 bits is aligned to 4 bytes; ");
  for (void* pointer :
       {(void*)&host, freed, (void*)nullptr, (void*)(inside + 8)})
    expect(pointer,
           " is in no block of device memory or pinned host memory, where the "
           "number must be.");
  expect(static_cast<char*>(odd) + 4,
         " has 2 bytes to the end of its block, and the number has 4.");
  expectWrite(nullptr, inside + 4, 1);
  EXPECT_EQ(orFree(odd), orSuccess);
  auto* gone = reinterpret_cast<orStream_t>(0x77700001);
  EXPECT_EQ(orStreamWaitValue32(gone, numbers.at, 0),
            orErrorInvalidResourceHandle);
  EXPECT_EQ(orStreamWriteValue32(gone, numbers.at, 0),
            orErrorInvalidResourceHandle);
}

TEST(Signals, an_observer_sees_the_wait_and_the_write) {
  struct Seen {
    std::mutex mutex;
    // By name: the wait may end before the observer hears of the write.
    std::map<std::string, orOperation> operations;
    int64_t waited = 0;
  } seen;
  orObserver_t observer;
  ASSERT_EQ(orAddObserver(
                &observer,
                [](const orRecord* record, void* data) {
                  auto& seen = *static_cast<Seen*>(data);
                  std::lock_guard lock(seen.mutex);
                  if (record->phase != orCommandEnds) return;
                  seen.operations[record->name] = record->operation;
                  seen.waited =
                      std::max(seen.waited, record->end - record->begin);
                },
                &seen),
            orSuccess);
  Stream waits;
  PinnedNumber number;
  expectWait(waits, number.at, 1);
  sleepMs(20);
  expectWrite(nullptr, number.at, 1);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(orRemoveObserver(observer), orSuccess);
  EXPECT_EQ(seen.operations, (std::map<std::string, orOperation>{
                                 {"write_value", orOperationRecord},
                                 {"wait_value", orOperationWait}}));
  EXPECT_GE(seen.waited, 15'000'000);
}

double processorSeconds() {
  rusage use;
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 *
             static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/// Three streams wait for `ms` milliseconds, and then go on.
void expectRestfulWaits(int ms) {
  Stream streams[3];
  PinnedNumber number;
  for (auto& stream : streams) expectWait(stream, number.at, 1);
  sleepMs(50);
  const double before = processorSeconds();
  sleepMs(ms);
  EXPECT_LT(processorSeconds() - before, 0.05);
  orSignalValue32(number.at, 1);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Signals, a_wait_uses_no_processor) { expectRestfulWaits(1000); }

// As on Linux before 5.16.
TEST(Signals, an_older_kernel_polls) {
  if (ranAgain({{}})) return;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex_waitv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {std::size(filter), filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  expectRestfulWaits(500);
}

// The other process of the tests below opens the numbers.
constexpr uint32_t kTurns = 1000;

TEST(Signals, DISABLED_answers) {
  auto* numbers = static_cast<uint32_t*>(openOfParent());
  ASSERT_NE(numbers, nullptr);
  Stream stream;
  for (uint32_t turn = 1; turn <= kTurns; ++turn) {
    expectWait(stream, numbers, turn);
    expectWrite(stream, numbers + 1, turn);
  }
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess) << detail();
  EXPECT_EQ(orIpcCloseMemHandle(numbers), orSuccess);
}

TEST(Signals, two_processes_play_ping_pong) {
  Numbers numbers(2);
  for (const char* schedule : {"threads", "blocking", "seed:3"}) {
    orMemset(numbers.at, 0, 8);
    const pid_t peer = start("Signals.DISABLED_answers",
                             {handleOf(numbers.at), "OPENREG_DEVICE_THREADS=1",
                              std::string("OPENREG_SCHEDULE=") + schedule});
    Stream stream;
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      expectWrite(stream, numbers.at, turn);
      expectWait(stream, numbers.at + 1, turn);
    }
    EXPECT_EQ(orStreamSynchronize(stream), orSuccess) << detail();
    EXPECT_EQ(statusOf(peer), 0) << schedule;
  }
}

// Closes what a stream waits for: the call ends when the wait does.
TEST(Signals, DISABLED_closes) {
  auto* numbers = static_cast<uint32_t*>(openOfParent());
  ASSERT_NE(numbers, nullptr);
  Stream stream;
  expectWait(stream, numbers, 1);
  auto closes = std::async(std::launch::async, [&] {
    EXPECT_EQ(orIpcCloseMemHandle(numbers), orSuccess) << detail();
  });
  // The thread may begin late. The number is 0, so these wait for nothing.
  Stream asks;
  orError_t asked;
  while (!(asked = orStreamWaitValue32(asks, numbers, 0))) sleepMs(1);
  expectRefused(asked, orErrorInvalidValue, " is in no block");
  EXPECT_EQ(closes.wait_for(std::chrono::milliseconds(20)),
            std::future_status::timeout);
  Stream writes;
  launch(writes, "write",
         [at = openreg::onDevice(numbers)] { orSignalValue32(at, 1); });
  closes.get();
}

TEST(Signals, closing_memory_waits_for_the_streams_that_wait_for_it) {
  Numbers number;
  const pid_t peer = start("Signals.DISABLED_closes", {handleOf(number.at)});
  expectWait(nullptr, number.at, 1);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  EXPECT_EQ(statusOf(peer), 0);
}

// A process that is killed leaves its numbers as they are.
TEST(Signals, DISABLED_dies) {
  auto* numbers = static_cast<uint32_t*>(openOfParent());
  Stream stream;
  expectWrite(stream, numbers, 1);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  kill(getpid(), SIGKILL);
}

TEST(Signals, a_wait_for_a_process_that_died_is_ended_by_writing_the_number) {
  Numbers numbers(2);
  Stream waits, ends;
  expectWait(waits, numbers.at, 2);
  const int status = again("Signals.DISABLED_dies", {handleOf(numbers.at)});
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(orStreamQuery(waits), orErrorNotReady);
  expectWrite(ends, numbers.at, 2);
  EXPECT_EQ(orStreamSynchronize(waits), orSuccess);
}

}  // namespace
