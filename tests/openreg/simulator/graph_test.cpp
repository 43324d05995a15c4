// SPDX-License-Identifier: BSD-3-Clause
// Captures of streams, and the graphs that they record.
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using openreg::launch;

size_t nodesOf(orGraph_t graph) {
  size_t count = 0;
  EXPECT_EQ(orGraphGetNodeCount(graph, &count), orSuccess) << detail();
  return count;
}

orStreamCaptureStatus captureStatusOf(const Stream& stream) {
  orStreamCaptureStatus status;
  EXPECT_EQ(orStreamIsCapturing(stream, &status), orSuccess);
  return status;
}

std::string stop(const Stream& stream, orError_t expected) {
  orGraph_t graph = reinterpret_cast<orGraph_t>(1);
  EXPECT_EQ(orStreamEndCapture(stream, &graph), expected);
  EXPECT_EQ(graph, nullptr);
  return detail();
}

std::string handle(const void* pointer) {
  std::ostringstream text;
  text << pointer;
  return text.str();
}

TEST(Graph, a_captured_stream_runs_nothing_until_its_graph_is_launched) {
  Stream stream;
  int runs = 0;
  orGraph_t graph = captured(stream, [&] {
    EXPECT_EQ(captureStatusOf(stream), orStreamCaptureStatusActive);
    EXPECT_EQ(launch(stream, "count", [&] { ++runs; }), orSuccess);
    EXPECT_EQ(launch(stream, "count", [&] { ++runs; }), orSuccess);
  });
  EXPECT_EQ(captureStatusOf(stream), orStreamCaptureStatusNone);
  orStreamSynchronize(stream);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(nodesOf(graph), 2u);
  Executable exec(graph);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess) << detail();
  exec.destroy();
  orStreamSynchronize(stream);
  EXPECT_EQ(runs, 6);
}

TEST(Graph, copies_sets_and_host_functions_are_nodes_too) {
  Stream stream;
  char* block = allocate(64);
  void* pinned;
  ASSERT_EQ(orMallocHost(&pinned, 64), orSuccess);
  auto* bytes = static_cast<char*>(pinned);
  int calls = 0;
  const Executable exec = executable(stream, [&] {
    orMemsetAsync(block, 7, 32, stream);
    orMemcpyAsync(block + 32, block, 32, orMemcpyDeviceToDevice, stream);
    orMemcpyAsync(pinned, block, 64, orMemcpyDeviceToHost, stream);
    orLaunchHostFunc(
        stream, [](void* count) { ++*static_cast<int*>(count); }, &calls);
  });
  for (int i = 1; i <= 2; ++i) {
    bytes[0] = bytes[63] = 0;
    launchAndWait(exec, stream);
    EXPECT_EQ(bytes[0], 7);
    EXPECT_EQ(bytes[63], 7);
    EXPECT_EQ(calls, i);
  }
  orFreeHost(pinned);
  orFree(block);
}

TEST(Graph, an_empty_graph_can_be_launched) {
  Stream stream;
  const Executable exec = executable(stream, [] {});
  launchAndWait(exec, stream);
}

TEST(Graph, work_before_and_after_a_launch_keeps_its_place) {
  Stream stream;
  std::string order;
  const auto note = [&](char letter) {
    launch(stream, "note", [&order, letter] { order += letter; });
  };
  const Executable exec = executable(stream, [&] {
    note('b');
    note('c');
  });
  note('a');
  orGraphLaunch(exec, stream);
  note('d');
  orGraphLaunch(exec, stream);
  orStreamSynchronize(stream);
  EXPECT_EQ(order, "abcdbc");
}

TEST(Graph, launches_on_two_streams_do_not_overlap) {
  Stream one, two;
  std::atomic<int> inside{0};
  int overlaps = 0;
  const Executable exec = executable(one, [&] {
    launch(one, "enter", [&] { overlaps += inside++ > 0; });
    launch(one, "work", [] { usleep(2000); });
    launch(one, "leave", [&] { --inside; });
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(orGraphLaunch(exec, (i % 2 ? one : two)), orSuccess);
  orDeviceSynchronize();
  EXPECT_EQ(overlaps, 0);
}

TEST(Graph, a_stream_of_the_same_priority_gets_its_turn_between_nodes) {
  Stream graphs, other;
  std::atomic<bool> ran{false}, late{false};
  const Executable exec = executable(graphs, [&] {
    for (int i = 0; i < 1000; ++i) launch(graphs, "wait", [] { usleep(100); });
    launch(graphs, "last", [&] { late = !ran; });
  });
  orGraphLaunch(exec, graphs);
  launch(other, "other", [&] { ran = true; });
  orDeviceSynchronize();
  EXPECT_FALSE(late);
}

TEST(Graph, arguments_that_cannot_be_moved_are_not_destroyed) {
  static int destroyed;
  destroyed = 0;
  const orKernel kernel{"immovable", 8,
                        [](void*, void*) { throw std::bad_alloc(); },
                        [](void*) {}, [](void*) { ++destroyed; }};
  Stream stream;
  int64_t arguments = 0;
  orGraphDestroy(captured(stream, [&] {
    EXPECT_EQ(orLaunchCommand(&kernel, nullptr, &arguments, stream),
              orErrorMemoryAllocation);
  }));
  EXPECT_EQ(destroyed, 0);
}

TEST(Graph, a_kernel_that_throws_stops_the_graph) {
  Stream stream;
  bool after = false;
  const Executable exec = executable(stream, [&] {
    launch(stream, "wrong", [] { throw std::runtime_error("no."); });
    launch(stream, "next", [&] { after = true; });
  });
  orGraphLaunch(exec, stream);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(detail(), "openreg:0 stopped in wrong: no.");
  EXPECT_FALSE(after);
  EXPECT_EQ(orGraphLaunch(exec, stream), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess);
}

TEST(Graph, its_launch_can_be_made_to_fail) {
  Stream stream;
  int runs = 0;
  const Executable exec =
      executable(stream, [&] { launch(stream, "count", [&] { ++runs; }); });
  ASSERT_EQ(orInject("launch:2"), orSuccess);
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(detail(),
            "openreg:0 stopped in graph: a launch was made to fail, by order");
  orInject(nullptr);
  orDeviceReset();
  launchAndWait(exec, stream);
  EXPECT_EQ(runs, 2);
}

TEST(Graph, a_fault_that_was_captured_is_in_every_launch) {
  Stream stream;
  const Executable exec = executable(stream, [&] {
    orInject("launch:1");
    EXPECT_EQ(launch(stream, "add", [] {}), orSuccess);
  });
  orInject(nullptr);
  for (int i = 0; i < 2; ++i) {
    orGraphLaunch(exec, stream);
    EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
    EXPECT_EQ(detail(),
              "openreg:0 stopped in add: a launch was made to fail, by order");
    orDeviceReset();
  }
}

TEST(Graph, arguments_live_as_long_as_the_graph_and_its_launches) {
  Stream stream;
  auto counted = std::make_shared<int>(0);
  orGraph_t graph = captured(
      stream, [&] { launch(stream, "count", [counted] { ++*counted; }); });
  EXPECT_EQ(counted.use_count(), 2);
  Executable exec(graph);
  std::atomic<bool> go{false};
  launch(stream, "hold", until(go));
  orGraphLaunch(exec, stream);
  exec.destroy();
  EXPECT_EQ(counted.use_count(), 2);
  go = true;
  orStreamSynchronize(stream);
  EXPECT_EQ(*counted, 1);
  // The last launch has ended; its command gives the graph back at once.
  for (int i = 0; i < 5000 && counted.use_count() > 1; ++i) usleep(1000);
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(Graph, a_name_may_go_away_after_the_capture) {
  Stream stream;
  std::string name = "a name that is too long to be kept in place";
  const Executable exec = executable(stream, [&] {
    launch(stream, name.c_str(), [] { throw std::runtime_error("no."); });
  });
  name.assign(name.size(), '?');
  orGraphLaunch(exec, stream);
  orStreamSynchronize(stream);
  EXPECT_EQ(detail(),
            "openreg:0 stopped in a name that is too long to be kept "
            "in place: no.");
  orDeviceReset();
}

// Streams join a capture by events.

TEST(Fork, a_stream_that_waits_for_an_event_of_a_capture_joins_it) {
  Stream main, side;
  Event forked, joined;
  std::string order;
  const auto note = [&](const Stream& stream, char letter) {
    launch(stream, "note", [&order, letter] { order += letter; });
  };
  uint64_t id = 0, its_id = 0;
  orGraph_t graph = captured(main, [&] {
    note(main, 'a');
    EXPECT_EQ(orEventRecord(forked, main), orSuccess);
    EXPECT_EQ(orStreamWaitEvent(side, forked, 0), orSuccess) << detail();
    EXPECT_EQ(captureStatusOf(side), orStreamCaptureStatusActive);
    orStreamGetCaptureId(main, &id);
    orStreamGetCaptureId(side, &its_id);
    note(side, 'b');
    EXPECT_EQ(orEventRecord(joined, side), orSuccess);
    EXPECT_EQ(orStreamWaitEvent(main, joined, 0), orSuccess);
    note(main, 'c');
  });
  EXPECT_EQ(id, its_id);
  EXPECT_EQ(captureStatusOf(side), orStreamCaptureStatusNone);
  EXPECT_EQ(nodesOf(graph), 3u);
  const Executable exec(graph);
  orGraphLaunch(exec, main);
  orDeviceSynchronize();
  EXPECT_EQ(order, "abc");
}

TEST(Fork, a_stream_that_is_not_joined_is_named) {
  Stream main, side;
  orStreamBeginCapture(main, orStreamCaptureModeGlobal);
  launch(main, "first", [] {});
  follow(side, main);
  launch(side, "lost", [] {});
  EXPECT_EQ(stop(main, orErrorStreamCaptureUnjoined),
            "Stream " + handle(side) + " joined the capture of stream " +
                handle(main) +
                ", which does not wait for its lost; record an event on the "
                "one and wait for it on the other.");
  EXPECT_EQ(captureStatusOf(side), orStreamCaptureStatusNone);
}

TEST(Fork, a_stream_that_joined_and_did_nothing_need_not_be_joined) {
  Stream main, side;
  int ran = 0;
  const Executable exec = executable(main, [&] {
    launch(main, "first", [&ran] { ++ran; });
    follow(side, main);
  });
  EXPECT_EQ(captureStatusOf(side), orStreamCaptureStatusNone);
  launchAndWait(exec, main);
  EXPECT_EQ(ran, 1);
}

TEST(Fork, two_streams_may_wait_for_one_node) {
  Stream main, left, right;
  Event forked;
  std::atomic<int> ran{0};
  const Executable exec = executable(main, [&] {
    launch(main, "first", [&ran] { ++ran; });
    orEventRecord(forked, main);
    for (const Stream* side : {&left, &right}) {
      orStreamWaitEvent(*side, forked, 0);
      launch(*side, "side", [&ran] { ran += ran > 0; });
      follow(main, *side);
    }
  });
  launchAndWait(exec, main);
  EXPECT_EQ(ran, 3);
}

TEST(Fork, a_capture_does_not_forbid_to_wait_for_another_device) {
  Stream main;
  orGraphDestroy(captured(
      main,
      [] {
        orSetDevice(1);
        EXPECT_EQ(orDeviceSynchronize(), orSuccess) << detail();
        orSetDevice(0);
      },
      orStreamCaptureModeRelaxed));
}

TEST(Fork, only_the_stream_that_began_a_capture_ends_it) {
  Stream main, side;
  orGraphDestroy(captured(main, [&] {
    follow(side, main);
    EXPECT_EQ(stop(side, orErrorInvalidValue),
              "Stream " + handle(side) + " joined the capture that stream " +
                  handle(main) + " began; end the capture on that stream.");
  }));
}

TEST(Fork, a_stream_of_another_device_cannot_join) {
  Stream main;
  orSetDevice(1);
  Stream elsewhere;
  orSetDevice(0);
  Event forked;
  orStreamBeginCapture(main, orStreamCaptureModeGlobal);
  orEventRecord(forked, main);
  EXPECT_EQ(orStreamWaitEvent(elsewhere, forked, 0),
            orErrorStreamCaptureIsolation);
  EXPECT_EQ(detail(),
            "orStreamWaitEvent makes a stream of another device join the "
            "capture; a graph is of one device.");
  stop(main, orErrorStreamCaptureInvalidated);
}

TEST(Fork, a_captured_stream_cannot_wait_for_work_outside) {
  Stream main, outside;
  Event early, never;
  orEventRecord(early, outside);
  orStreamSynchronize(outside);
  orStreamBeginCapture(main, orStreamCaptureModeGlobal);
  EXPECT_EQ(orStreamWaitEvent(main, never, 0), orSuccess);
  EXPECT_EQ(orStreamWaitEvent(main, early, 0), orErrorStreamCaptureIsolation);
  EXPECT_EQ(detail(),
            "orStreamWaitEvent makes a stream that is captured wait for an "
            "event that was recorded outside the capture; record the event in "
            "it.");
  stop(main, orErrorStreamCaptureInvalidated);
}

TEST(Fork, two_captures_at_a_time_do_not_wait_for_each_other) {
  Stream one, two;
  Event event;
  orStreamBeginCapture(one, orStreamCaptureModeRelaxed);
  orStreamBeginCapture(two, orStreamCaptureModeRelaxed);
  launch(one, "one", [] {});
  orEventRecord(event, one);
  EXPECT_EQ(orStreamWaitEvent(two, event, 0), orErrorStreamCaptureIsolation);
  EXPECT_EQ(detail().find("orStreamWaitEvent makes a stream wait for an event "
                          "of another capture while stream "),
            0u)
      << detail();
  stop(two, orErrorStreamCaptureInvalidated);
  orGraph_t graph;
  EXPECT_EQ(orStreamEndCapture(one, &graph), orSuccess);
  orGraphDestroy(graph);
}

TEST(Fork, of_two_captures_that_a_stream_shall_join_at_once_one_gets_it) {
  Stream origins[2], wanted;
  Event events[2];
  for (int round = 0; round < 200; ++round) {
    for (int i : {0, 1}) {
      orStreamBeginCapture(origins[i], orStreamCaptureModeRelaxed);
      orEventRecord(events[i], origins[i]);
    }
    std::atomic<int> waiting{2}, joined{0}, refused{0};
    const auto join = [&](int i) {
      --waiting;
      while (waiting) std::this_thread::yield();
      const orError_t error = orStreamWaitEvent(wanted, events[i], 0);
      joined += error == orSuccess;
      refused += error == orErrorStreamCaptureIsolation;
    };
    std::thread second(join, 1);
    join(0);
    second.join();
    ASSERT_EQ(joined, 1);
    ASSERT_EQ(refused, 1);

    // Whose stream was asked to join another capture is invalid.
    int invalid = 0;
    for (const Stream& origin : origins) {
      orGraph_t graph;
      const orError_t error = orStreamEndCapture(origin, &graph);
      invalid += error == orErrorStreamCaptureInvalidated;
      if (!error) orGraphDestroy(graph);
    }
    ASSERT_EQ(invalid, 1);
    ASSERT_EQ(captureStatusOf(wanted), orStreamCaptureStatusNone);
  }
}

TEST(Fork, an_event_of_a_capture_is_of_no_use_after_it) {
  Stream main, other;
  Event event;
  orGraphDestroy(captured(main, [&] {
    launch(main, "first", [] {});
    orEventRecord(event, main);
  }));
  float ms;
  const std::string sentence =
      "The event was recorded in a capture that has ended, so it never "
      "completes; record it again.";
  for (const auto& [text, make] :
       {CALL(orEventQuery(event)), CALL(orEventSynchronize(event)),
        CALL(orStreamWaitEvent(other, event, 0)),
        CALL(orEventElapsedTime(&ms, event, event))}) {
    EXPECT_EQ(make(), orErrorInvalidValue) << text;
    EXPECT_EQ(detail(), sentence);
  }
  EXPECT_EQ(orEventRecord(event, main), orSuccess);
  EXPECT_EQ(orEventSynchronize(event), orSuccess);
}

// What a capture forbids.

class Capture : public testing::Test {
 protected:
  /// Each call fails with a sentence, invalidates a capture, and leaves the
  /// stream usable.
  void expectForbidden(orStreamCaptureMode mode, const std::string& what,
                       const std::vector<Call>& calls) {
    for (const auto& [text, make] : calls) {
      const std::string call = nameOf(text);
      ASSERT_EQ(orStreamBeginCapture(stream, mode), orSuccess);
      launch(stream, "first", [] {});
      orEventRecord(event, stream);
      EXPECT_EQ(make(), orErrorStreamCaptureUnsupported) << text;
      const std::string sentence = detail();
      EXPECT_EQ(sentence, call + " " + what + " while stream " +
                              handle(stream) +
                              " is being captured; a capture runs nothing, so "
                              "make the call before it or after it.");
      EXPECT_EQ(captureStatusOf(stream), orStreamCaptureStatusInvalidated);
      const std::string later = "The capture of stream " + handle(stream) +
                                " is invalid: " + sentence;
      EXPECT_EQ(launch(stream, "next", [] {}), orErrorStreamCaptureInvalidated);
      EXPECT_EQ(detail(), later);
      EXPECT_EQ(stop(stream, orErrorStreamCaptureInvalidated), later);
      bool ran = false;
      launch(stream, "after", [&] { ran = true; });
      EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
      EXPECT_TRUE(ran);
    }
  }

  Stream stream, other;
  Event event;
  const char* kWaits = "waits for the device";
  char* block = allocate(1 << 20);
  std::vector<char> pageable = std::vector<char>(1 << 20);

  ~Capture() override { orFree(block); }
};

TEST_F(Capture, a_question_about_captured_work_is_forbidden_in_every_mode) {
  const char *of_stream = "was called for a stream of it",
             *of_event = "was called for an event of it";
  const std::vector<Call> on_stream = {CALL(orStreamSynchronize(stream))},
                          on_event = {CALL(orEventSynchronize(event))},
                          on_device = {CALL(orDeviceSynchronize()),
                                       CALL(orDeviceReset())};
  for (orStreamCaptureMode mode :
       {orStreamCaptureModeGlobal, orStreamCaptureModeRelaxed}) {
    const bool relaxed = mode == orStreamCaptureModeRelaxed;
    expectForbidden(
        mode, of_stream,
        {CALL(orStreamQuery(stream)), CALL(orStreamDestroy(stream))});
    expectForbidden(mode, of_event, {CALL(orEventQuery(event))});
    expectForbidden(mode, relaxed ? of_stream : kWaits, on_stream);
    expectForbidden(mode, relaxed ? of_event : kWaits, on_event);
    expectForbidden(mode,
                    relaxed ? "waits for all streams of the device" : kWaits,
                    on_device);
    expectForbidden(mode,
                    "copies memory that is neither the device's nor pinned, "
                    "and so must run now,",
                    {CALL(orMemcpyAsync(block, pageable.data(), 8,
                                        orMemcpyHostToDevice, stream)),
                     CALL(orMemcpyAsync(pageable.data(), block, 1 << 20,
                                        orMemcpyDeviceToHost, stream))});
  }
}

TEST_F(Capture, a_graph_cannot_be_captured_into_another) {
  const Executable exec =
      executable(other, [&] { launch(other, "inner", [] {}); });
  expectForbidden(orStreamCaptureModeGlobal, "was called for a stream of it",
                  {CALL(orGraphLaunch(exec, stream))});
}

TEST_F(Capture, calls_that_wait_for_anything_are_forbidden_unless_relaxed) {
  char* mine = allocate(8);
  void* pinned;
  orMallocHost(&pinned, 8);
  const std::vector<Call> waiting = {
      CALL(orStreamSynchronize(other)),
      CALL(orMemcpy(block, mine, 8, orMemcpyDeviceToDevice)),
      CALL(orMemset(block, 0, 8)),
      CALL(orMemcpyAsync(pageable.data(), block, 8, orMemcpyDeviceToHost,
                         other)),
      CALL(orFreeHost(pinned)),
      CALL(orFree(mine))};
  expectForbidden(orStreamCaptureModeGlobal, kWaits, waiting);
  expectForbidden(orStreamCaptureModeThreadLocal, kWaits, waiting);
  orGraphDestroy(captured(
      stream,
      [&] {
        for (const auto& [text, make] : waiting)
          EXPECT_EQ(make(), orSuccess) << text << ": " << detail();
      },
      orStreamCaptureModeRelaxed));
}

TEST_F(Capture, the_mode_says_whether_other_threads_may_wait) {
  const auto elsewhere = [&] {
    orError_t error;
    std::thread([&] { error = orStreamSynchronize(other); }).join();
    return error;
  };
  orGraphDestroy(captured(
      stream, [&] { EXPECT_EQ(elsewhere(), orSuccess); },
      orStreamCaptureModeThreadLocal));
  expectForbidden(orStreamCaptureModeGlobal, kWaits,
                  {Call("orStreamSynchronize", [&] {
                    orError_t error;
                    std::string sentence;
                    std::thread([&] {
                      error = orStreamSynchronize(other);
                      sentence = detail();
                    }).join();
                    // The thread's own sentence, again for this one.
                    orError_t again = orStreamSynchronize(other);
                    EXPECT_EQ(sentence, detail());
                    return error == again ? error : orErrorUnknown;
                  })});
}

TEST_F(Capture, a_thread_may_say_that_its_own_waits_disturb_none) {
  char* block = allocate(64);
  const auto wait = [&](orStreamCaptureMode mode) {
    EXPECT_EQ(orThreadExchangeStreamCaptureMode(&mode), orSuccess);
    EXPECT_EQ(mode, orStreamCaptureModeGlobal);
    const orError_t error = orStreamSynchronize(other);
    EXPECT_EQ(orThreadExchangeStreamCaptureMode(&mode), orSuccess);
    return error;
  };
  orGraph_t graph = captured(stream, [&] {
    launch(stream, "first", [] {});
    std::thread([&] {
      EXPECT_EQ(wait(orStreamCaptureModeThreadLocal), orSuccess) << detail();
      orStreamCaptureMode mode = orStreamCaptureModeRelaxed;
      EXPECT_EQ(orThreadExchangeStreamCaptureMode(&mode), orSuccess);
      EXPECT_EQ(orFree(block), orSuccess) << detail();
    }).join();
    EXPECT_EQ(wait(orStreamCaptureModeRelaxed), orSuccess) << detail();
    EXPECT_EQ(launch(stream, "second", [] {}), orSuccess) << detail();
  });
  EXPECT_EQ(nodesOf(graph), 2u);
  orGraphDestroy(graph);
  orStreamBeginCapture(stream, orStreamCaptureModeThreadLocal);
  EXPECT_EQ(wait(orStreamCaptureModeThreadLocal),
            orErrorStreamCaptureUnsupported);
  stop(stream, orErrorStreamCaptureInvalidated);
}

TEST_F(Capture, a_mode_that_does_not_exist_is_not_exchanged) {
  auto mode = static_cast<orStreamCaptureMode>(3);
  EXPECT_EQ(orThreadExchangeStreamCaptureMode(&mode), orErrorInvalidValue);
  EXPECT_EQ(detail(), "A capture has the mode 0, 1 or 2; 3 was given.");
  EXPECT_EQ(orThreadExchangeStreamCaptureMode(nullptr), orErrorInvalidValue);
}

TEST_F(Capture, of_the_threads_that_end_it_one_succeeds) {
  for (bool is_valid : {true, false}) {
    for (int round = 0; round < 30; ++round) {
      ASSERT_EQ(orStreamBeginCapture(stream, orStreamCaptureModeGlobal),
                orSuccess)
          << detail();
      for (int i = 0; i < 50; ++i) launch(stream, "first", [] {});
      if (!is_valid) orStreamSynchronize(stream);
      std::atomic<int> waiting{4}, ended{0}, refused{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          --waiting;
          while (waiting) std::this_thread::yield();
          orGraph_t graph;
          const orError_t error = orStreamEndCapture(stream, &graph);
          ended +=
              error == orSuccess || error == orErrorStreamCaptureInvalidated;
          refused += error == orErrorInvalidValue;
          if (!error) orGraphDestroy(graph);
        });
      }
      for (std::thread& thread : threads) thread.join();
      ASSERT_EQ(ended, 1);
      ASSERT_EQ(refused, 3);
    }
  }
  orGraph_t graph = captured(stream, [&] {
    EXPECT_EQ(launch(stream, "first", [] {}), orSuccess) << detail();
  });
  EXPECT_EQ(nodesOf(graph), 1u);
  orGraphDestroy(graph);
}

TEST_F(Capture, a_wait_at_its_end_is_refused_for_the_capture_or_not_at_all) {
  std::atomic<bool> is_over{false};
  std::thread frees([&] {
    while (!is_over) {
      void* block = allocate(1);
      for (orError_t error = orFree(block); error; error = orFree(block)) {
        ASSERT_EQ(error, orErrorStreamCaptureUnsupported) << detail();
      }
    }
  });
  for (int round = 0; round < 2000; ++round) {
    orGraph_t graph;
    orStreamBeginCapture(stream, orStreamCaptureModeGlobal);
    if (orStreamEndCapture(stream, &graph) == orSuccess) orGraphDestroy(graph);
  }
  is_over = true;
  frees.join();
}

TEST_F(Capture, allocating_and_asking_about_other_work_is_allowed) {
  void *more = nullptr, *pinned = nullptr;
  Event eager;
  orEventRecord(eager, other);
  orStreamSynchronize(other);
  orGraph_t graph = captured(stream, [&] {
    EXPECT_EQ(orMalloc(&more, 64), orSuccess);
    EXPECT_EQ(orMallocHost(&pinned, 64), orSuccess);
    EXPECT_EQ(orStreamQuery(other), orSuccess);
    EXPECT_EQ(orEventQuery(eager), orSuccess);
    EXPECT_EQ(launch(other, "eager", [] {}), orSuccess);
  });
  EXPECT_EQ(nodesOf(graph), 0u);
  orGraphDestroy(graph);
  orFree(more);
  orFreeHost(pinned);
}

TEST_F(Capture, a_capture_is_begun_once_and_not_on_the_default_stream) {
  EXPECT_EQ(orStreamBeginCapture(nullptr, orStreamCaptureModeGlobal),
            orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "The default stream cannot be captured; create a stream.");
  EXPECT_EQ(orStreamBeginCapture(stream, static_cast<orStreamCaptureMode>(3)),
            orErrorInvalidValue);
  EXPECT_EQ(detail(), "A capture has the mode 0, 1 or 2; 3 was given.");
  EXPECT_EQ(stop(stream, orErrorInvalidValue),
            "Stream " + handle(stream) +
                " is not being captured, so there is no capture to end.");
  orGraph_t graph = captured(stream, [&] {
    EXPECT_EQ(orStreamBeginCapture(stream, orStreamCaptureModeGlobal),
              orErrorInvalidValue);
    EXPECT_EQ(detail(), "Stream " + handle(stream) +
                            " is being captured already; end that capture "
                            "first.");
    launch(stream, "first", [] {});
  });
  EXPECT_EQ(nodesOf(graph), 1u);
  orGraphDestroy(graph);
}

TEST_F(Capture, a_process_may_exit_in_the_middle_of_one) {
  if (ranAgain({{}})) return;
  orStreamBeginCapture(stream, orStreamCaptureModeGlobal);
  launch(stream, "first", [] {});
  std::exit(0);
}

// Handles and places.

TEST(GraphHandle, an_executable_graph_is_not_made_when_that_is_ordered) {
  Stream stream;
  orGraph_t graph = captured(stream, [] {});
  orGraphExec_t exec = nullptr;
  ASSERT_EQ(orInject("create:1"), orSuccess);
  EXPECT_EQ(orGraphInstantiate(&exec, graph), orErrorMemoryAllocation);
  EXPECT_EQ(detail(),
            "The creation of an executable graph was made to fail, by order.");
  EXPECT_EQ(orGraphInstantiate(&exec, graph), orSuccess);
  EXPECT_EQ(orGraphExecDestroy(exec), orSuccess);
  EXPECT_EQ(orGraphDestroy(graph), orSuccess);
}

TEST(GraphHandle, what_does_not_exist_is_refused) {
  Stream stream;
  orGraph_t graph = captured(stream, [] {});
  orGraphExec_t exec;
  orGraphInstantiate(&exec, graph);
  orGraphDestroy(graph);
  orGraphExecDestroy(exec);
  size_t count;
  const std::string no_graph =
      "Graph " + handle(graph) +
      " does not exist; it was never captured, or it is destroyed.";
  const std::string no_exec =
      "Executable graph " + handle(exec) +
      " does not exist; it was never instantiated, or it is destroyed.";
  for (const auto& [call, sentence] :
       {std::pair{CALL(orGraphDestroy(graph)), no_graph},
        {CALL(orGraphGetNodeCount(graph, &count)), no_graph},
        {CALL(orGraphDebugDotPrint(graph, "graph.dot")), no_graph},
        {CALL(orGraphInstantiate(&exec, graph)), no_graph},
        {CALL(orGraphExecDestroy(exec)), no_exec},
        {CALL(orGraphLaunch(exec, stream)), no_exec}}) {
    EXPECT_EQ(call.make(), orErrorInvalidResourceHandle) << call.text;
    EXPECT_EQ(detail(), sentence) << call.text;
  }
}

TEST(GraphHandle, a_null_place_is_refused) {
  Stream stream;
  orGraph_t graph = captured(stream, [] {});
  for (const auto& [text, make] :
       {CALL(orGraphInstantiate(nullptr, graph)),
        CALL(orGraphGetNodeCount(graph, nullptr)),
        CALL(orStreamEndCapture(stream, nullptr)),
        CALL(orStreamIsCapturing(stream, nullptr)),
        CALL(orStreamGetCaptureId(stream, nullptr))}) {
    EXPECT_EQ(make(), orErrorInvalidValue);
    EXPECT_EQ(detail(),
              nameOf(text) + " needs a place for the answer, not null.");
  }
  EXPECT_EQ(orGraphDebugDotPrint(graph, nullptr), orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "orGraphDebugDotPrint needs the path of a file, not null.");
  EXPECT_EQ(orGraphDebugDotPrint(graph, "/no/such/folder/graph.dot"),
            orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "The graph cannot be written to /no/such/folder/graph.dot; its "
            "folder must exist and be writable.");
  orGraphDestroy(graph);
}

TEST(GraphHandle, a_graph_is_launched_on_its_own_device) {
  Stream stream;
  const Executable exec = executable(stream, [] {});
  orSetDevice(1);
  EXPECT_EQ(orGraphLaunch(exec, nullptr), orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "The graph was captured on openreg:0, the stream is on openreg:1; "
            "they must be of one device.");
  orSetDevice(0);
  EXPECT_EQ(orGraphLaunch(exec, nullptr), orSuccess);
  orDeviceSynchronize();
}

TEST(GraphHandle, a_launch_on_another_device_leaves_its_stream_as_it_was) {
  Stream stream;
  std::atomic<bool> may_end{false};
  const Executable exec = executable(stream, [&] {
    launch(stream, "wait", [&] {
      while (!may_end) usleep(100);
    });
  });
  EXPECT_EQ(orGraphLaunch(exec, nullptr), orSuccess);
  orSetDevice(1);
  orDeviceSynchronize();
  EXPECT_EQ(orGraphLaunch(exec, nullptr), orErrorInvalidValue);
  EXPECT_EQ(orStreamQuery(nullptr), orSuccess)
      << "it does not wait for a graph";
  orSetDevice(0);
  EXPECT_EQ(orStreamQuery(nullptr), orErrorNotReady);
  may_end = true;
  orDeviceSynchronize();
}

TEST(GraphHandle, a_drawing_names_the_kernels_and_has_their_dependencies) {
  Stream main, side;
  char* block = allocate(64);
  orGraph_t graph = captured(main, [&] {
    launch(main, "a \"quoted\" \\name", [] {});
    follow(side, main);
    orMemsetAsync(block, 1, 64, side);
    launch(main, "mul", [] {});
    follow(main, side);
    launch(main, "add", [] {});
  });
  const std::string path = testing::TempDir() + "openreg-graph.dot";
  ASSERT_EQ(orGraphDebugDotPrint(graph, path.c_str()), orSuccess);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(),
            "digraph graph_of_4_nodes {\n"
            "  node [shape=box];\n"
            "  0 [label=\"a \\\"quoted\\\" \\\\name\"];\n"
            "  1 [label=\"memset\\n64 bytes\"];\n"
            "  0 -> 1;\n"
            "  2 [label=\"mul\"];\n"
            "  0 -> 2;\n"
            "  3 [label=\"add\"];\n"
            "  2 -> 3;\n"
            "  1 -> 3;\n"
            "}\n");
  std::remove(path.c_str());
  orGraphDestroy(graph);
  orFree(block);
}

// Observers.

TEST(GraphObserver, nodes_have_the_number_of_their_launch) {
  Stream stream;
  char* block = allocate(64);
  const Executable exec = executable(stream, [&] {
    launch(stream, "mul", [] {});
    orMemsetAsync(block, 1, 64, stream);
  });
  const auto all = recordsOf(exec, stream, 8);
  std::string told;
  uint64_t number = 0;
  for (const auto& [name, record] : all) {
    if (!number) number = record.correlation;
    EXPECT_EQ(record.correlation, number);
    if (record.phase != orCallReturns && record.phase != orCommandEnqueued)
      told += name + (record.phase == orCommandBegins ? "( " : ") ");
    if (name == "memset") {
      EXPECT_EQ(record.bytes, 64u);
    }
    if (name == "graph") {
      EXPECT_EQ(record.operation, orOperationGraph);
    }
  }
  EXPECT_EQ(told, "graph( mul( mul) memset( memset) graph) ");
  orFree(block);
}

// All schedules.

TEST(GraphSchedule, launches_are_whole_under_every_schedule) {
  if (ranAgain(under({"threads", "blocking", "seed:1", "seed:2", "seed:3"})))
    return;
  Stream one, two;
  int value = 0;
  const Executable exec = executable(one, [&] {
    for (int i = 0; i < 10; ++i) launch(one, "add", [&] { ++value; });
  });
  for (int i = 0; i < 20; ++i) orGraphLaunch(exec, (i % 3 ? one : two));
  orDeviceSynchronize();
  EXPECT_EQ(value, 200);
}

}  // namespace
