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
    expectAll(
        orErrorInvalidResourceHandle,
        {CALL(orStreamDestroy(stream)), CALL(orStreamQuery(stream)),
         CALL(orStreamSynchronize(stream)),
         CALL(orStreamGetPriority(stream, &number)),
         CALL(orStreamGetDevice(stream, &number)),
         CALL(orStreamIsCapturing(stream, &status)),
         CALL(orStreamWaitEvent(stream, event, 0)),
         CALL(orEventRecord(event, stream)), CALL(enqueue(stream, [] {})),
         CALL(orMemcpyAsync(block, host, 1, orMemcpyHostToDevice, stream)),
         CALL(orMemcpyAsync(block, host, 0, orMemcpyHostToDevice, stream)),
         CALL(orMemsetAsync(block, 0, 1, stream)),
         CALL(orMemsetAsync(block, 0, 0, stream)),
         CALL(orMemcpyPeerAsync(block, 0, block, 0, 0, stream))});
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
    expectAll(orErrorInvalidResourceHandle,
              {CALL(orEventDestroy(gone)), CALL(orEventRecord(gone, nullptr)),
               CALL(orEventQuery(gone)), CALL(orEventSynchronize(gone)),
               CALL(orStreamWaitEvent(nullptr, gone, 0)),
               CALL(orEventElapsedTime(&ms, event, gone))});
  }
}

}  // namespace
