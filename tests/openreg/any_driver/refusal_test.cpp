// SPDX-License-Identifier: BSD-3-Clause
// What every function of openreg.h refuses, and with which code.
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/streams.h"

namespace {

TEST_F(Refused, memory) {
  void* out;
  orPointerAttributes attributes;
  size_t size;
  expectAll({
      {"malloc to null", orErrorInvalidValue,
       [&] { return orMalloc(nullptr, 1); }},
      {"malloc too much", orErrorMemoryAllocation,
       [&] { return orMalloc(&out, size_t{1} << 60); }},
      {"malloc host to null", orErrorInvalidValue,
       [&] { return orMallocHost(nullptr, 1); }},
      {"malloc host too much", orErrorMemoryAllocation,
       [&] { return orMallocHost(&out, size_t{1} << 60); }},
      {"free of host memory", orErrorInvalidValue,
       [&] { return orFree(host); }},
      {"free of pinned memory", orErrorInvalidValue,
       [&] { return orFree(pinned); }},
      {"free of freed memory", orErrorInvalidValue,
       [&] { return orFree(freed); }},
      {"free in the middle", orErrorInvalidValue,
       [&] { return orFree(static_cast<char*>(block) + 1); }},
      {"free host of device memory", orErrorInvalidValue,
       [&] { return orFreeHost(block); }},
      {"free host of host memory", orErrorInvalidValue,
       [&] { return orFreeHost(host); }},
      {"attributes to null", orErrorInvalidValue,
       [&] { return orPointerGetAttributes(nullptr, block); }},
      {"info to null", orErrorInvalidValue,
       [&] { return orMemGetInfo(nullptr, &size); }},
  });
  EXPECT_EQ(orFree(nullptr), orSuccess);
  EXPECT_EQ(orFreeHost(nullptr), orSuccess);
  EXPECT_EQ(orPointerGetAttributes(&attributes, nullptr), orSuccess);
  EXPECT_EQ(attributes.type, orMemoryTypeUnmanaged);
}

TEST_F(Refused, copies) {
  expectAll({
      {"past the end", orErrorInvalidValue,
       [&] { return orMemcpy(block, host, 101, orMemcpyHostToDevice); }},
      {"past the end of pinned", orErrorInvalidValue,
       [&] { return orMemcpy(pinned, block, 101, orMemcpyDeviceToHost); }},
      {"peer nothing to no device", orErrorInvalidDevice,
       [&] { return orMemcpyPeerAsync(block, 1000, block, 0, 0, nullptr); }},
      {"nothing of no kind", orErrorInvalidMemcpyDirection,
       [&] { return orMemcpy(block, host, 0, static_cast<orMemcpyKind>(9)); }},
      {"from host as device", orErrorInvalidMemcpyDirection,
       [&] { return orMemcpy(block, host, 1, orMemcpyDeviceToDevice); }},
      {"to device as host", orErrorInvalidMemcpyDirection,
       [&] { return orMemcpy(block, host, 1, orMemcpyHostToHost); }},
      {"no such kind", orErrorInvalidMemcpyDirection,
       [&] { return orMemcpy(block, host, 1, static_cast<orMemcpyKind>(-1)); }},
      {"to null", orErrorInvalidValue,
       [&] { return orMemcpy(nullptr, host, 1, orMemcpyHostToHost); }},
      {"set past the end", orErrorInvalidValue,
       [&] { return orMemset(block, 0, 101); }},
      {"set of host memory", orErrorInvalidMemcpyDirection,
       [&] { return orMemset(host, 0, 1); }},
      {"peer from the host", orErrorInvalidValue,
       [&] { return orMemcpyPeerAsync(block, 0, host, 0, 1, nullptr); }},
  });
  EXPECT_EQ(orMemcpy(nullptr, nullptr, 0, orMemcpyHostToHost), orSuccess);
}

TEST_F(Refused, devices) {
  orDeviceProp properties;
  int number;
  expectAll({
      {"set -1", orErrorInvalidDevice, [] { return orSetDevice(-1); }},
      {"set too far", orErrorInvalidDevice, [] { return orSetDevice(1000); }},
      {"get to null", orErrorInvalidValue, [] { return orGetDevice(nullptr); }},
      {"count to null", orErrorInvalidValue,
       [] { return orGetDeviceCount(nullptr); }},
      {"started to null", orErrorInvalidValue,
       [] { return orDeviceIsStarted(0, nullptr); }},
      {"properties to null", orErrorInvalidValue,
       [] { return orGetDeviceProperties(nullptr, 0); }},
      {"properties of none", orErrorInvalidDevice,
       [&] { return orGetDeviceProperties(&properties, 1000); }},
      {"priorities to null", orErrorInvalidValue,
       [&] { return orDeviceGetStreamPriorityRange(&number, nullptr); }},
      {"default stream of none", orErrorInvalidDevice,
       [] {
         orStream_t stream;
         return orDeviceGetDefaultStream(&stream, 1000);
       }},
      {"default stream to null", orErrorInvalidValue,
       [] { return orDeviceGetDefaultStream(nullptr, 0); }},
  });
}

TEST_F(Refused, streams) {
  expectAll({
      {"create to null", orErrorInvalidValue,
       [] { return orStreamCreate(nullptr); }},
      {"create with flags", orErrorInvalidValue,
       [] {
         orStream_t stream;
         return orStreamCreateWithPriority(&stream, 1, 0);
       }},
      {"destroy the default", orErrorInvalidResourceHandle,
       [] { return orStreamDestroy(nullptr); }},
      {"priority to null", orErrorInvalidValue,
       [] { return orStreamGetPriority(nullptr, nullptr); }},
      {"device to null", orErrorInvalidValue,
       [] { return orStreamGetDevice(nullptr, nullptr); }},
      {"captured to null", orErrorInvalidValue,
       [] { return orStreamIsCapturing(nullptr, nullptr); }},
      {"wait with flags", orErrorInvalidValue,
       [&] { return orStreamWaitEvent(nullptr, event, 1); }},
      {"launch no function", orErrorInvalidValue,
       [] { return orLaunchHostFunc(nullptr, nullptr, nullptr); }},
  });
}

TEST_F(Refused, events) {
  float ms;
  orEvent_t untimed;
  orEventCreateWithFlags(&untimed, orEventDisableTiming);
  expectAll({
      {"create to null", orErrorInvalidValue,
       [] { return orEventCreate(nullptr); }},
      {"create with other flags", orErrorInvalidValue,
       [] {
         orEvent_t made;
         return orEventCreateWithFlags(&made, 2);
       }},
      {"elapsed to null", orErrorInvalidValue,
       [&] { return orEventElapsedTime(nullptr, event, event); }},
      {"elapsed without timing", orErrorInvalidValue,
       [&] { return orEventElapsedTime(&ms, untimed, event); }},
      {"elapsed without recording", orErrorInvalidValue,
       [&] { return orEventElapsedTime(&ms, event, event); }},
      {"destroy null", orErrorInvalidResourceHandle,
       [] { return orEventDestroy(nullptr); }},
      {"record null", orErrorInvalidResourceHandle,
       [] { return orEventRecord(nullptr, nullptr); }},
      {"query null", orErrorInvalidResourceHandle,
       [] { return orEventQuery(nullptr); }},
      {"synchronize null", orErrorInvalidResourceHandle,
       [] { return orEventSynchronize(nullptr); }},
      {"elapsed to an event that is null", orErrorInvalidResourceHandle,
       [&] { return orEventElapsedTime(&ms, event, nullptr); }},
  });
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
