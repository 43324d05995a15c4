// SPDX-License-Identifier: BSD-3-Clause
// Every call of the driver while the host has no memory for it: it does without
// or is refused, and then the same call succeeds.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/scarce.h"

#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

namespace {

using Step = std::function<orError_t()>;

/// `make` is what is tried. `prepare` comes before each trial, and `undo` after
/// it has succeeded.
struct Call {
  const char* name;
  Step prepare, make, undo;
  /// A call that is refused has ended what it should end nevertheless.
  bool ends_anyway = false;
};

orError_t nothing() { return orSuccess; }

/// What the calls are about.
struct Scene {
  static constexpr size_t kSmall = 64, kLarge = 1 << 20;
  char* block = allocate(kLarge);
  char* other = allocate(kLarge);
  void* pinned = nullptr;
  std::vector<char> host = std::vector<char>(kLarge);
  Stream stream;
  Event event, early, late;
  orGraph_t graph = nullptr;
  orGraphExec_t exec = nullptr;

  // What a call makes, and the next one ends.
  void* made = nullptr;
  orStream_t made_stream = nullptr;
  orEvent_t made_event = nullptr;
  orGraph_t made_graph = nullptr;
  orGraphExec_t made_exec = nullptr;
  orObserver_t observer = nullptr;
  size_t size = 0;
  int number = 0;

  Scene() {
    EXPECT_EQ(orMallocHost(&pinned, kLarge), orSuccess);
    EXPECT_EQ(orMemset(block, 0, kLarge), orSuccess);
    EXPECT_EQ(orEventRecord(early.handle, nullptr), orSuccess);
    EXPECT_EQ(orEventRecord(late.handle, nullptr), orSuccess);
    graph =
        captured(stream, [&] { orMemsetAsync(block, 0, 8, stream.handle); });
    EXPECT_EQ(orGraphInstantiate(&exec, graph), orSuccess);
  }
  ~Scene() {
    EXPECT_EQ(orGraphExecDestroy(exec), orSuccess);
    EXPECT_EQ(orGraphDestroy(graph), orSuccess);
    EXPECT_EQ(orFree(block), orSuccess);
    EXPECT_EQ(orFree(other), orSuccess);
    EXPECT_EQ(orFreeHost(pinned), orSuccess);
  }
};

std::vector<Call> memoryCalls(Scene& s) {
  const Step free = [&] { return orFree(s.made); };
  const Step wait = [] { return orDeviceSynchronize(); };
  const auto copy = [&s, wait](const char* name, void* to, const void* from,
                               size_t bytes, orMemcpyKind kind) {
    return Call{name, nothing,
                [=, &s] {
                  return orMemcpyAsync(to, from, bytes, kind, s.stream.handle);
                },
                wait};
  };
  const orStream_t& stream = s.stream.handle;
  return {
      {"orMalloc", nothing, [&] { return orMalloc(&s.made, s.kSmall); }, free},
      {"orFree", [&] { return orMalloc(&s.made, s.kSmall); }, free, nothing},
      {"orMallocHost", nothing, [&] { return orMallocHost(&s.made, s.kSmall); },
       [&] { return orFreeHost(s.made); }},
      {"orFreeHost", [&] { return orMallocHost(&s.made, s.kSmall); },
       [&] { return orFreeHost(s.made); }, nothing},
      copy("of a few pageable bytes", s.block, s.host.data(), s.kSmall,
           orMemcpyHostToDevice),
      copy("of many pageable bytes", s.block, s.host.data(), s.kLarge,
           orMemcpyHostToDevice),
      copy("to pageable memory", s.host.data(), s.block, s.kLarge,
           orMemcpyDeviceToHost),
      copy("of pinned memory", s.block, s.pinned, s.kLarge,
           orMemcpyHostToDevice),
      copy("on the device", s.other, s.block, s.kLarge, orMemcpyDeviceToDevice),
      {"orMemcpy", nothing,
       [&] {
         return orMemcpy(s.block, s.host.data(), s.kSmall,
                         orMemcpyHostToDevice);
       },
       nothing},
      {"orMemcpyPeerAsync", nothing,
       [&] { return orMemcpyPeerAsync(s.other, 0, s.block, 0, 8, stream); },
       wait},
      {"orMemset", nothing, [&] { return orMemset(s.block, 1, 8); }, nothing},
      {"orMemsetAsync", nothing,
       [&] { return orMemsetAsync(s.block, 1, 8, stream); }, wait},
      {"orMemGetInfo", nothing, [&] { return orMemGetInfo(&s.size, &s.size); },
       nothing},
      {"orPointerGetAttributes", nothing,
       [&] {
         orPointerAttributes found;
         return orPointerGetAttributes(&found, s.block + 1);
       },
       nothing},
      {"orIpcGetMemHandle", nothing,
       [&] {
         orIpcMemHandle_t handle;
         return orIpcGetMemHandle(&handle, s.block);
       },
       nothing},
  };
}

std::vector<Call> streamCalls(Scene& s) {
  const orStream_t& stream = s.stream.handle;
  const orEvent_t& event = s.event.handle;
  const Step wait = [] { return orDeviceSynchronize(); };
  const Step destroy = [&] { return orStreamDestroy(s.made_stream); };
  const Step drop = [&] { return orEventDestroy(s.made_event); };
  return {
      {"orStreamCreate", nothing,
       [&] { return orStreamCreate(&s.made_stream); }, destroy},
      {"orStreamCreateWithPriority", nothing,
       [&] { return orStreamCreateWithPriority(&s.made_stream, 0, -1); },
       destroy},
      {"orStreamDestroy", [&] { return orStreamCreate(&s.made_stream); },
       destroy, nothing},
      {"orStreamQuery", wait, [&] { return orStreamQuery(stream); }, nothing},
      {"orStreamSynchronize",
       [&] { return orMemsetAsync(s.block, 0, 8, stream); },
       [&] { return orStreamSynchronize(stream); }, nothing},
      {"orStreamGetDevice", nothing,
       [&] { return orStreamGetDevice(stream, &s.number); }, nothing},
      {"orStreamGetPriority", nothing,
       [&] { return orStreamGetPriority(stream, &s.number); }, nothing},
      {"orStreamWaitEvent", [&] { return orEventRecord(event, nullptr); },
       [&] { return orStreamWaitEvent(stream, event, 0); }, wait},
      {"orLaunchHostFunc", nothing,
       [&] {
         return orLaunchHostFunc(
             stream, [](void*) {}, nullptr);
       },
       wait},
      {"orLaunchCommand", nothing,
       [&] { return openreg::launch(stream, "nothing", [] {}); }, wait},
      {"orEventCreate", nothing, [&] { return orEventCreate(&s.made_event); },
       drop},
      {"orEventCreateWithFlags", nothing,
       [&] {
         return orEventCreateWithFlags(&s.made_event, orEventDisableTiming);
       },
       drop},
      {"orEventDestroy", [&] { return orEventCreate(&s.made_event); }, drop,
       nothing},
      {"orEventRecord", nothing, [&] { return orEventRecord(event, stream); },
       wait},
      {"orEventSynchronize", [&] { return orEventRecord(event, stream); },
       [&] { return orEventSynchronize(event); }, nothing},
      {"orEventQuery", wait, [&] { return orEventQuery(event); }, nothing},
      {"orEventElapsedTime", wait,
       [&] {
         float milliseconds;
         return orEventElapsedTime(&milliseconds, s.early.handle,
                                   s.late.handle);
       },
       nothing},
      {"orStreamWriteValue32", nothing,
       [&] { return orStreamWriteValue32(stream, s.block, 1); }, wait},
      {"orStreamWaitValue32",
       [&] { return orStreamWriteValue32(stream, s.block, 1); },
       [&] { return orStreamWaitValue32(stream, s.block, 1); }, wait},
      {"orDeviceSynchronize",
       [&] { return orMemsetAsync(s.block, 0, 8, stream); }, wait, nothing},
  };
}

std::vector<Call> deviceCalls(Scene& s) {
  return {
      {"orGetDeviceCount", nothing, [&] { return orGetDeviceCount(&s.number); },
       nothing},
      {"orGetDevice", nothing, [&] { return orGetDevice(&s.number); }, nothing},
      {"orSetDevice", nothing, [] { return orSetDevice(1); },
       [] { return orSetDevice(0); }},
      {"orGetDeviceProperties", nothing,
       [] {
         orDeviceProp properties;
         return orGetDeviceProperties(&properties, 0);
       },
       nothing},
      {"orDeviceGetDefaultStream", nothing,
       [&] { return orDeviceGetDefaultStream(&s.made_stream, 1); }, nothing},
      {"orDeviceGetStreamPriorityRange", nothing,
       [&] { return orDeviceGetStreamPriorityRange(&s.number, &s.number); },
       nothing},
      {"orDeviceReset", [] { return orSetDevice(1); },
       [] { return orDeviceReset(); }, [] { return orSetDevice(0); }},
      {"orInject", nothing, [] { return orInject("alloc:1000000000"); },
       [] { return orInject(""); }},
      {"orSetWaitCallback", nothing,
       [] {
         return orSetWaitCallback(
             1'000'000'000, [](void*) { return 0; }, nullptr);
       },
       [] { return orSetWaitCallback(0, nullptr, nullptr); }},
      {"orAddObserver", nothing,
       [&] {
         return orAddObserver(
             &s.observer, [](const orRecord*, void*) {}, nullptr);
       },
       [&] { return orRemoveObserver(s.observer); }},
      {"orRemoveObserver",
       [&] {
         return orAddObserver(
             &s.observer, [](const orRecord*, void*) {}, nullptr);
       },
       [&] { return orRemoveObserver(s.observer); }, nothing},
      {"orRangePush", nothing, [] { return orRangePush("a range"); },
       [] { return orRangePop(); }},
      {"orRangePop", [] { return orRangePush("a range"); },
       [] { return orRangePop(); }, nothing},
      {"orFindRaces", nothing, [] { return orFindRaces(1); },
       [] { return orFindRaces(0); }},
      {"orVisitRaces", nothing,
       [] { return orVisitRaces([](const orRace*, void*) {}, nullptr); },
       nothing},
      {"orClearRaces", nothing, [] { return orClearRaces(); }, nothing},
      {"orVisitViolations", nothing,
       [] {
         return orVisitViolations([](const orViolation*, void*) {}, nullptr);
       },
       nothing},
      {"orClearViolations", nothing, [] { return orClearViolations(); },
       nothing},
      {"orMemoryIsGuarded", nothing,
       [&] { return orMemoryIsGuarded(&s.number); }, nothing},
  };
}

std::vector<Call> graphCalls(Scene& s) {
  const orStream_t& stream = s.stream.handle;
  const Step begin = [&] {
    return orStreamBeginCapture(stream, orStreamCaptureModeGlobal);
  };
  const Step end = [&] {
    const orError_t error = orStreamEndCapture(stream, &s.made_graph);
    return error ? error : orGraphDestroy(s.made_graph);
  };
  const auto recorded = [=](const char* name, Step make) {
    return Call{name, begin, std::move(make), end};
  };
  return {
      {"orStreamBeginCapture", nothing, begin, end},
      {"orStreamEndCapture",
       [=, &s] {
         const orError_t error = begin();
         return error ? error : orMemsetAsync(s.block, 0, 8, stream);
       },
       end, nothing, /*ends_anyway=*/true},
      recorded("orMemsetAsync, captured",
               [&] { return orMemsetAsync(s.block, 0, 8, stream); }),
      recorded("orLaunchCommand, captured",
               [&] { return openreg::launch(stream, "nothing", [] {}); }),
      recorded("orEventRecord, captured",
               [&] { return orEventRecord(s.event.handle, stream); }),
      recorded("orStreamIsCapturing",
               [&] {
                 orStreamCaptureStatus status;
                 return orStreamIsCapturing(stream, &status);
               }),
      recorded("orStreamGetCaptureId",
               [&] {
                 uint64_t id;
                 return orStreamGetCaptureId(stream, &id);
               }),
      {"orGraphGetNodeCount", nothing,
       [&] { return orGraphGetNodeCount(s.graph, &s.size); }, nothing},
      {"orGraphDebugDotPrint", nothing,
       [&] { return orGraphDebugDotPrint(s.graph, "/dev/null"); }, nothing},
      {"orGraphInstantiate", nothing,
       [&] { return orGraphInstantiate(&s.made_exec, s.graph); },
       [&] { return orGraphExecDestroy(s.made_exec); }},
      {"orGraphExecDestroy",
       [&] { return orGraphInstantiate(&s.made_exec, s.graph); },
       [&] { return orGraphExecDestroy(s.made_exec); }, nothing},
      {"orGraphLaunch", nothing, [&] { return orGraphLaunch(s.exec, stream); },
       [] { return orDeviceSynchronize(); }},
  };
}

/// Fails the first allocation of a call, then the second, until none is left.
void tryEverywhere(const Call& call) {
  SCOPED_TRACE(call.name);
  for (bool once : {true, false}) {
    for (int number = 0;; ++number) {
      ASSERT_LT(number, 100);
      SCOPED_TRACE("allocation " + std::to_string(number));
      ASSERT_EQ(call.prepare(), orSuccess) << detail();
      scarce::fails_once = once;
      scarce::failed = false;
      scarce::left = number;
      orError_t error = call.make();
      scarce::left = scarce::kAll;
      if (error) {
        ASSERT_TRUE(scarce::failed) << detail();
        ASSERT_EQ(error, orErrorMemoryAllocation) << detail();
        ASSERT_EQ(detail().back(), '.') << detail();
        if (call.ends_anyway) {
          ASSERT_EQ(call.prepare(), orSuccess) << detail();
        }
        ASSERT_EQ(call.make(), orSuccess) << detail();
      }
      ASSERT_EQ(call.undo(), orSuccess) << detail();
      if (!scarce::failed) break;
    }
  }
}

TEST(EveryCall, is_refused_or_does_without_memory) {
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(orMemGetInfo(&before, &total), orSuccess);
  {
    Scene scene;
    for (const auto calls :
         {memoryCalls, streamCalls, deviceCalls, graphCalls}) {
      for (const Call& call : calls(scene)) tryEverywhere(call);
    }
  }
  ASSERT_EQ(orMemGetInfo(&after, &total), orSuccess);
  EXPECT_EQ(after, before);
}

// The threads of the devices are the parent's, so a call could wait for ever.
// What asks no device goes on: destructors free, and tools are told to stop.
TEST(EveryCall, is_refused_in_a_forked_child_if_it_needs_a_device) {
  Scene scene;
  int words[2];
  ASSERT_EQ(pipe(words), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string others;
    for (const auto calls :
         {memoryCalls, streamCalls, deviceCalls, graphCalls}) {
      for (const Call& call : calls(scene)) {
        const orError_t error = call.make();
        if (error != orErrorForked) others += call.name + std::string(" ");
      }
    }
    const ssize_t written = write(words[1], others.data(), others.size());
    _exit(written == static_cast<ssize_t>(others.size()) ? 0 : 1);
  }
  close(words[1]);
  std::string others(4096, '\0');
  others.resize(read(words[0], others.data(), others.size()));
  close(words[0]);
  EXPECT_EQ(statusOf(child), 0);
  EXPECT_EQ(others,
            "orFree orFreeHost orGetDeviceCount orGetDevice orSetDevice "
            "orGetDeviceProperties orDeviceGetStreamPriorityRange orInject "
            "orSetWaitCallback orAddObserver orRemoveObserver orRangePush "
            "orRangePop orVisitRaces orClearRaces orVisitViolations "
            "orClearViolations orMemoryIsGuarded orGraphGetNodeCount "
            "orGraphDebugDotPrint orGraphExecDestroy ");
}

TEST(EveryCall, is_so_under_every_schedule_and_sanitizer) {
  expectAgain("EveryCall.is_refused*", {{"OPENREG_SCHEDULE=blocking"},
                                        {"OPENREG_SCHEDULE=seed:1"},
                                        {"OPENREG_SANITIZE=races"},
                                        {"OPENREG_SANITIZE=memory"}});
}

}  // namespace
