// SPDX-License-Identifier: BSD-3-Clause
// What a driver promises that knows which handles are in use.
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <unistd.h>

namespace {

TEST_F(Refused, destroyed_streams) {
  int number;
  orStreamCaptureStatus status;
  for (orStream_t stream : {gone_stream, no_stream}) {
    expectAll({
        {"destroy", orErrorInvalidResourceHandle,
         [=] { return orStreamDestroy(stream); }},
        {"query", orErrorInvalidResourceHandle,
         [=] { return orStreamQuery(stream); }},
        {"synchronize", orErrorInvalidResourceHandle,
         [=] { return orStreamSynchronize(stream); }},
        {"priority", orErrorInvalidResourceHandle,
         [&] { return orStreamGetPriority(stream, &number); }},
        {"device", orErrorInvalidResourceHandle,
         [&] { return orStreamGetDevice(stream, &number); }},
        {"captured", orErrorInvalidResourceHandle,
         [&] { return orStreamIsCapturing(stream, &status); }},
        {"wait", orErrorInvalidResourceHandle,
         [&] { return orStreamWaitEvent(stream, event, 0); }},
        {"record", orErrorInvalidResourceHandle,
         [&] { return orEventRecord(event, stream); }},
        {"launch", orErrorInvalidResourceHandle,
         [=] { return enqueue(stream, [] {}); }},
        {"copy", orErrorInvalidResourceHandle,
         [&] {
           return orMemcpyAsync(block, host, 1, orMemcpyHostToDevice, stream);
         }},
        {"copy nothing", orErrorInvalidResourceHandle,
         [&] {
           return orMemcpyAsync(block, host, 0, orMemcpyHostToDevice, stream);
         }},
        {"set", orErrorInvalidResourceHandle,
         [&] { return orMemsetAsync(block, 0, 1, stream); }},
        {"set nothing", orErrorInvalidResourceHandle,
         [&] { return orMemsetAsync(block, 0, 0, stream); }},
        {"peer nothing", orErrorInvalidResourceHandle,
         [&] { return orMemcpyPeerAsync(block, 0, block, 0, 0, stream); }},
    });
  }
}

TEST_F(Refused, destroyed_streams_that_still_have_work) {
  orStream_t stream;
  ASSERT_EQ(orStreamCreate(&stream), orSuccess);
  enqueue(stream, [] { usleep(5000); });
  ASSERT_EQ(orStreamDestroy(stream), orSuccess);
  EXPECT_EQ(orStreamDestroy(stream), orErrorInvalidResourceHandle);
  EXPECT_EQ(enqueue(stream, [] {}), orErrorInvalidResourceHandle);
}

TEST_F(Refused, destroyed_events) {
  float ms;
  for (orEvent_t gone : {gone_event, no_event}) {
    expectAll({
        {"destroy", orErrorInvalidResourceHandle,
         [=] { return orEventDestroy(gone); }},
        {"record", orErrorInvalidResourceHandle,
         [=] { return orEventRecord(gone, nullptr); }},
        {"query", orErrorInvalidResourceHandle,
         [=] { return orEventQuery(gone); }},
        {"synchronize", orErrorInvalidResourceHandle,
         [=] { return orEventSynchronize(gone); }},
        {"wait", orErrorInvalidResourceHandle,
         [=] { return orStreamWaitEvent(nullptr, gone, 0); }},
        {"elapsed", orErrorInvalidResourceHandle,
         [&] { return orEventElapsedTime(&ms, event, gone); }},
    });
  }
}

}  // namespace
