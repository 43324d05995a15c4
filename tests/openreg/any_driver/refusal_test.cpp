// SPDX-License-Identifier: BSD-3-Clause
// What every function of openreg.h refuses, and with which code.
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/streams.h"

namespace {

TEST_F(Refused, memory) {
  void* out;
  orPointerAttributes attributes;
  size_t size;
  expectAll(orErrorMemoryAllocation,
            {CALL(orMalloc(&out, size_t{1} << 60)),
             CALL(orMallocHost(&out, size_t{1} << 60))});
  expectAll(
      orErrorInvalidValue,
      {CALL(orMalloc(nullptr, 1)), CALL(orMallocHost(nullptr, 1)),
       CALL(orFree(host)), CALL(orFree(pinned)), CALL(orFree(freed)),
       CALL(orFree(static_cast<char*>(block) + 1)), CALL(orFreeHost(block)),
       CALL(orFreeHost(host)), CALL(orPointerGetAttributes(nullptr, block)),
       CALL(orMemGetInfo(nullptr, &size))});
  EXPECT_EQ(orFree(nullptr), orSuccess);
  EXPECT_EQ(orFreeHost(nullptr), orSuccess);
  EXPECT_EQ(orPointerGetAttributes(&attributes, nullptr), orSuccess);
  EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
}

TEST_F(Refused, copies) {
  expectAll(orErrorInvalidValue,
            {CALL(orMemcpy(block, host, 101, orMemcpyHostToDevice)),
             CALL(orMemcpy(pinned, block, 101, orMemcpyDeviceToHost)),
             CALL(orMemcpy(nullptr, host, 1, orMemcpyHostToHost)),
             CALL(orMemset(block, 0, 101)),
             CALL(orMemcpyPeerAsync(block, 0, host, 0, 1, nullptr))});
  expectAll(orErrorInvalidMemcpyDirection,
            {CALL(orMemcpy(block, host, 0, static_cast<orMemcpyKind>(9))),
             CALL(orMemcpy(block, host, 1, static_cast<orMemcpyKind>(-1))),
             CALL(orMemcpy(block, host, 1, orMemcpyDeviceToDevice)),
             CALL(orMemcpy(block, host, 1, orMemcpyHostToHost)),
             CALL(orMemset(host, 0, 1))});
  expectAll(orErrorInvalidDevice,
            {CALL(orMemcpyPeerAsync(block, 1000, block, 0, 0, nullptr))});
  EXPECT_EQ(orMemcpy(nullptr, nullptr, 0, orMemcpyHostToHost), orSuccess);
}

TEST_F(Refused, devices) {
  orDeviceProp properties;
  orStream_t stream;
  int number;
  expectAll(orErrorInvalidDevice,
            {CALL(orSetDevice(-1)), CALL(orSetDevice(1000)),
             CALL(orGetDeviceProperties(&properties, 1000)),
             CALL(orDeviceGetDefaultStream(&stream, 1000))});
  expectAll(orErrorInvalidValue,
            {CALL(orGetDevice(nullptr)), CALL(orGetDeviceCount(nullptr)),
             CALL(orDeviceIsStarted(0, nullptr)),
             CALL(orGetDeviceProperties(nullptr, 0)),
             CALL(orDeviceGetStreamPriorityRange(&number, nullptr)),
             CALL(orDeviceGetDefaultStream(nullptr, 0))});
}

TEST_F(Refused, streams) {
  orStream_t stream;
  expectAll(orErrorInvalidResourceHandle, {CALL(orStreamDestroy(nullptr))});
  expectAll(orErrorInvalidValue,
            {CALL(orStreamCreate(nullptr)),
             CALL(orStreamCreateWithPriority(&stream, 1, 0)),
             CALL(orStreamGetPriority(nullptr, nullptr)),
             CALL(orStreamGetDevice(nullptr, nullptr)),
             CALL(orStreamIsCapturing(nullptr, nullptr)),
             CALL(orStreamWaitEvent(nullptr, event, 1)),
             CALL(orLaunchHostFunc(nullptr, nullptr, nullptr))});
}

TEST_F(Refused, events) {
  float ms;
  orEvent_t untimed, made;
  orEventCreateWithFlags(&untimed, orEventDisableTiming);
  expectAll(
      orErrorInvalidValue,
      {CALL(orEventCreate(nullptr)), CALL(orEventCreateWithFlags(&made, 2)),
       CALL(orEventElapsedTime(nullptr, event, event)),
       CALL(orEventElapsedTime(&ms, untimed, event)),
       // Neither was recorded.
       CALL(orEventElapsedTime(&ms, event, event))});
  expectAll(
      orErrorInvalidResourceHandle,
      {CALL(orEventDestroy(nullptr)), CALL(orEventRecord(nullptr, nullptr)),
       CALL(orEventQuery(nullptr)), CALL(orEventSynchronize(nullptr)),
       CALL(orEventElapsedTime(&ms, event, nullptr))});
  orEventDestroy(untimed);
}

TEST(Errors, every_code_has_a_name_and_a_sentence) {
  for (int code = 0; code <= orErrorNotPermitted; ++code) {
    const auto error = static_cast<orError_t>(code);
    EXPECT_EQ(std::string(orGetErrorName(error)).rfind("or", 0), 0u);
    EXPECT_EQ(std::string(orGetErrorString(error)).back(), '.');
    if (code != orErrorUnknown) {
      EXPECT_STRNE(orGetErrorName(error), "orErrorUnknown");
    }
  }
  EXPECT_STREQ(orGetErrorName(static_cast<orError_t>(99)), "orErrorUnknown");
}

}  // namespace
