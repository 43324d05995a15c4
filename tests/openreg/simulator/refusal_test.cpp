// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace {

TEST_F(Refused, tools) {
  void* out;
  int number;
  orIpcMemHandle_t handle;
  const orAccess access{};
  Stream stream;
  const auto no_mode = static_cast<orStreamCaptureMode>(3);
  expectAll(
      orErrorInvalidValue,
      {CALL(orIpcGetMemHandle(&handle, freed)),
       CALL(orIpcGetMemHandle(nullptr, block)),
       CALL(orIpcOpenMemHandle(nullptr, {})), CALL(orIpcCloseMemHandle(block)),
       CALL(orAnnounceHostAccess(nullptr, &access)),
       CALL(orAnnounceHostAccess("sum", nullptr)),
       CALL(orDeviceGetStreamPriorityRange(nullptr, &number)),
       CALL(orAccessFlag(nullptr)), CALL(orVisitFindings(nullptr, nullptr)),
       CALL(orStreamBeginCapture(stream, no_mode))});
  expectAll(orErrorInvalidResourceHandle, {CALL(orIpcOpenMemHandle(&out, {}))});
  expectAll(orErrorInvalidConfiguration, {CALL(orInject("no"))});
}

TEST_F(Refused, handles_that_are_destroyed) {
  float ms;
  orGraph_t graph;
  uint64_t id;
  Event untimed(orEventDisableTiming);
  expectAll(orErrorInvalidResourceHandle,
            {CALL(orEventElapsedTime(&ms, gone_event, event)),
             CALL(orStreamEndCapture(no_stream, &graph)),
             CALL(orStreamGetCaptureId(no_stream, &id))});
  expectAll(orErrorInvalidValue,
            {CALL(orEventElapsedTime(&ms, event, untimed))});
  EXPECT_EQ(orStreamGetCaptureId(nullptr, &id), orSuccess);
  EXPECT_EQ(id, 0u);
}

// What has no bytes or no name is nothing to refuse.
TEST_F(Refused, nothing_for_what_is_empty) {
  void* none = block;
  EXPECT_EQ(orMalloc(&none, 0), orSuccess);
  EXPECT_EQ(none, nullptr);
  none = block;
  EXPECT_EQ(orMallocHost(&none, 0), orSuccess);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(orMemcpyPeerAsync(block, 0, block, 0, 0, nullptr), orSuccess);
  EXPECT_EQ(orMemsetAsync(nullptr, 0, 0, nullptr), orSuccess);
  EXPECT_EQ(orMemcpy(host, host + 50, 50, orMemcpyHostToHost), orSuccess);
  EXPECT_EQ(openreg::launch(nullptr, nullptr, [] {}), orSuccess);
  bool is_null = false;
  EXPECT_EQ(openreg::launch(nullptr, "null",
                            [&is_null] {
                              char* nothing = nullptr;
                              is_null = !openreg::onDevice(nothing);
                            }),
            orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_TRUE(is_null);
  int is_started = 1;
  EXPECT_EQ(orDeviceIsStarted(-1, &is_started), orSuccess);
  EXPECT_FALSE(is_started);
}

TEST_F(Refused, launches) {
  orKernel large{};
  large.bytes = orMaxArgumentBytes + 1;
  expectAll(orErrorInvalidValue,
            {CALL(orLaunchCommand(nullptr, "", nullptr, nullptr)),
             CALL(orLaunchCommand(&large, "", nullptr, nullptr))});
  expectAll(orErrorInvalidResourceHandle,
            {CALL(openreg::launch(gone_stream, "late", [] {})),
             CALL(openreg::launch(no_stream, "late", [] {}))});
}

// The sentences of the simulator; another driver has its own.
TEST(Sentences, name_the_values) {
  size_t free, total;
  orMemGetInfo(&free, &total);
  void* pointer;
  EXPECT_EQ(orMalloc(&pointer, total + 1), orErrorMemoryAllocation);
  EXPECT_EQ(detail(), "openreg:0 has " + std::to_string(free) + " of " +
                          std::to_string(total) +
                          " bytes free, and no free block of " +
                          std::to_string(total + 1) + " bytes.");
  char host[64];
  ASSERT_EQ(orMalloc(&pointer, 32), orSuccess);
  EXPECT_EQ(orMemcpy(pointer, host, 33, orMemcpyHostToDevice),
            orErrorInvalidValue);
  EXPECT_NE(detail().find("has 32 bytes to the end of its block, and 33"),
            std::string::npos);
  orFree(pointer);
  orStream_t standard;
  orDeviceGetDefaultStream(&standard, 0);
  EXPECT_EQ(orStreamDestroy(standard), orErrorInvalidResourceHandle);
  EXPECT_EQ(detail(), "The default stream cannot be destroyed.");
}

TEST(Sentences, name_the_function_that_has_no_place_for_its_answer) {
  for (const auto& [text, make] :
       {CALL(orGetDeviceCount(nullptr)), CALL(orGetDevice(nullptr)),
        CALL(orGetDeviceProperties(nullptr, 0)), CALL(orMalloc(nullptr, 1)),
        CALL(orMallocHost(nullptr, 1)), CALL(orMemGetInfo(nullptr, nullptr)),
        CALL(orStreamCreateWithPriority(nullptr, 0, 0)),
        CALL(orEventCreateWithFlags(nullptr, 0)),
        CALL(orIpcGetMemHandle(nullptr, nullptr))}) {
    EXPECT_EQ(make(), orErrorInvalidValue) << text;
    EXPECT_EQ(detail(),
              nameOf(text) + " needs a place for the answer, not null.");
  }
}

TEST(Sentences, name_both_devices) {
  Event event;
  orEventRecord(event, nullptr);
  void *here, *there;
  orMalloc(&here, 64);
  orSetDevice(1);
  orMalloc(&there, 64);
  EXPECT_EQ(orEventRecord(event, nullptr), orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "The event was recorded on openreg:0, the stream is on openreg:1; "
            "they must be of one device.");
  orSetDevice(0);
  EXPECT_EQ(orMemcpyPeerAsync(there, 0, here, 0, 64, nullptr),
            orErrorInvalidValue);
  EXPECT_EQ(detail(),
            "The copy is from openreg:0 to openreg:0, but the blocks are of 0 "
            "and 1 (-1: of no device).");
  orFree(here);
  orFree(there);
}

TEST(Sentences, a_forked_child_is_told_to_spawn) {
  orDeviceSynchronize();
  const pid_t child = fork();
  if (child == 0) {
    void* pointer = &pointer;
    const bool refused = orMalloc(&pointer, 1) == orErrorForked && !pointer &&
                         detail().find("'spawn'") != std::string::npos;
    _exit(refused && orIsForked() ? 0 : 1);
  }
  EXPECT_EQ(statusOf(child), 0);
  EXPECT_FALSE(orIsForked());
}

}  // namespace
