// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

namespace {

TEST(Event, an_event_never_recorded_is_ready_and_blocks_nobody) {
  Stream stream;
  Event event;
  EXPECT_EQ(orEventQuery(event), orSuccess);
  EXPECT_EQ(orEventSynchronize(event), orSuccess);
  EXPECT_EQ(orStreamWaitEvent(stream, event, 0), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Event, a_stream_waits_for_what_the_event_recorded_before) {
  Stream a, b;
  Event event;
  std::atomic<bool> go{false};
  std::atomic<int> value{0};
  enqueue(a, [&] {
    while (!go) usleep(10);
    value = 1;
  });
  orEventRecord(event, a);
  orStreamWaitEvent(b, event, 0);
  int seen = -1;
  enqueue(b, [&] { seen = value; });
  usleep(2000);
  EXPECT_EQ(orStreamQuery(b), orErrorNotReady);
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  go = true;
  orStreamSynchronize(b);
  EXPECT_EQ(seen, 1);
}

TEST(Event, recording_again_does_not_move_the_point_others_wait_for) {
  Stream a, b;
  Event event;
  std::atomic<bool> first{false}, second{false};
  enqueue(a, until(first));
  orEventRecord(event, a);
  orStreamWaitEvent(b, event, 0);
  enqueue(a, until(second));
  orEventRecord(event, a);
  first = true;
  EXPECT_EQ(orStreamSynchronize(b), orSuccess);
  EXPECT_EQ(orEventQuery(event), orErrorNotReady);
  second = true;
  EXPECT_EQ(orEventSynchronize(event), orSuccess);
}

TEST(Event, the_time_between_two_events_is_told_in_milliseconds) {
  Stream stream;
  Event start, end;
  float ms = 0;
  EXPECT_EQ(orEventElapsedTime(&ms, start, end), orErrorInvalidValue);
  orEventRecord(start, stream);
  enqueue(stream, [] { usleep(20000); });
  orEventRecord(end, stream);
  orEventSynchronize(end);
  EXPECT_EQ(orEventElapsedTime(&ms, start, end), orSuccess);
  EXPECT_GE(ms, 20);
}

TEST(Event, waiting_many_times_loses_no_wake_up) {
  Stream a, b;
  Event event(orEventDisableTiming);
  int value = 0;
  for (int i = 0; i < 20000; ++i) {
    enqueue(a, [&] { ++value; });
    orEventRecord(event, a);
    orStreamWaitEvent(b, event, 0);
    enqueue(b, [&] { ++value; });
    orEventRecord(event, b);
    orStreamWaitEvent(a, event, 0);
    if (i % 100 == 0) orEventSynchronize(event);
  }
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(value, 40000);
}

}  // namespace
