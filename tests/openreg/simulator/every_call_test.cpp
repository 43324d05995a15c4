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
#include <memory>
#include <string>
#include <vector>

namespace {

using Step = std::function<orError_t()>;

/// What is tried. `prepare` comes before each trial, and `undo` after it has
/// succeeded.
struct Tried {
  std::string name;
  Step make;
  Step prepare = [] { return orSuccess; }, undo = prepare;
  /// A call that is refused has ended what it should end nevertheless.
  bool ends_anyway = false;

  Tried(const std::string& call, Step make)
      : name(call.substr(0, call.find('('))), make(std::move(make)) {}
  Tried after(Step step) && {
    prepare = std::move(step);
    return *this;
  }
  Tried before(Step step) && {
    undo = std::move(step);
    return *this;
  }
};
#define TRY(...) Tried(#__VA_ARGS__, [&] { return __VA_ARGS__; })
#define STEP(...) [&] { return __VA_ARGS__; }

/// What the calls are about.
struct Scene {
  static constexpr size_t kSmall = 64, kLarge = 1 << 20;
  char* block = allocate(kLarge);
  char* other = allocate(kLarge);
  void* pinned = nullptr;
  std::vector<char> host = std::vector<char>(kLarge);
  Stream stream, side;
  Event event, early, late, joined;
  std::shared_ptr<int> held = std::make_shared<int>();
  orGraph_t graph = nullptr;
  orGraphExec_t exec = nullptr;

  // What a call makes, and the next one ends.
  void* made = nullptr;
  orStream_t made_stream = nullptr;
  orEvent_t made_event = nullptr;
  orGraph_t made_graph = nullptr;
  orGraphExec_t made_exec = nullptr;
  orObserver_t observer = nullptr;
  // What a call answers.
  size_t size = 0;
  int number = 0;
  float ms = 0;
  uint64_t id = 0;
  orDeviceProp properties;
  orPointerAttributes attributes;
  orIpcMemHandle_t handle;
  orStreamCaptureStatus status;

  Scene() {
    EXPECT_EQ(orMallocHost(&pinned, kLarge), orSuccess);
    EXPECT_EQ(orMemset(block, 0, kLarge), orSuccess);
    EXPECT_EQ(orEventRecord(early, nullptr), orSuccess);
    EXPECT_EQ(orEventRecord(late, nullptr), orSuccess);
    graph = captured(stream, [&] { orMemsetAsync(block, 0, 8, stream); });
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

std::vector<Tried> memoryCalls(Scene& s) {
  const Step free = STEP(orFree(s.made)), free_host = STEP(orFreeHost(s.made));
  const Step wait = [] { return orDeviceSynchronize(); };
  const orStream_t& stream = s.stream.handle;
  return {
      TRY(orMalloc(&s.made, s.kSmall)).before(free),
      TRY(orFree(s.made)).after(STEP(orMalloc(&s.made, s.kSmall))),
      TRY(orMallocHost(&s.made, s.kSmall)).before(free_host),
      TRY(orFreeHost(s.made)).after(STEP(orMallocHost(&s.made, s.kSmall))),
      TRY(orMemcpyAsync(s.block, s.host.data(), s.kSmall, orMemcpyHostToDevice,
                        stream))
          .before(wait),
      TRY(orMemcpyAsync(s.block, s.host.data(), s.kLarge, orMemcpyHostToDevice,
                        stream))
          .before(wait),
      TRY(orMemcpyAsync(s.host.data(), s.block, s.kLarge, orMemcpyDeviceToHost,
                        stream))
          .before(wait),
      TRY(orMemcpyAsync(s.block, s.pinned, s.kLarge, orMemcpyHostToDevice,
                        stream))
          .before(wait),
      TRY(orMemcpyAsync(s.other, s.block, s.kLarge, orMemcpyDeviceToDevice,
                        stream))
          .before(wait),
      TRY(orMemcpy(s.block, s.host.data(), s.kSmall, orMemcpyHostToDevice)),
      TRY(orMemcpyPeerAsync(s.other, 0, s.block, 0, 8, stream)).before(wait),
      TRY(orMemset(s.block, 1, 8)),
      TRY(orMemsetAsync(s.block, 1, 8, stream)).before(wait),
      TRY(orMemGetInfo(&s.size, &s.size)),
      TRY(orPointerGetAttributes(&s.attributes, s.block + 1)),
      TRY(orIpcGetMemHandle(&s.handle, s.block)),
  };
}

std::vector<Tried> streamCalls(Scene& s) {
  const orStream_t& stream = s.stream.handle;
  const orEvent_t& event = s.event.handle;
  const Step wait = [] { return orDeviceSynchronize(); };
  const Step work = STEP(orMemsetAsync(s.block, 0, 8, stream));
  const Step record = STEP(orEventRecord(event, stream));
  const Step destroy = STEP(orStreamDestroy(s.made_stream));
  const Step drop = STEP(orEventDestroy(s.made_event));
  return {
      TRY(orStreamCreate(&s.made_stream)).before(destroy),
      TRY(orStreamCreateWithPriority(&s.made_stream, 0, -1)).before(destroy),
      TRY(orStreamDestroy(s.made_stream))
          .after(STEP(orStreamCreate(&s.made_stream))),
      TRY(orStreamQuery(stream)).after(wait),
      TRY(orStreamSynchronize(stream)).after(work),
      TRY(orStreamGetDevice(stream, &s.number)),
      TRY(orStreamGetPriority(stream, &s.number)),
      TRY(orStreamWaitEvent(stream, event, 0))
          .after(STEP(orEventRecord(event, nullptr)))
          .before(wait),
      TRY(orLaunchHostFunc(
              stream, [](void*) {}, nullptr))
          .before(wait),
      Tried("orLaunchCommand", STEP(openreg::launch(stream, "nothing", [] {})))
          .before(wait),
      TRY(orEventCreate(&s.made_event)).before(drop),
      TRY(orEventCreateWithFlags(&s.made_event, orEventDisableTiming))
          .before(drop),
      TRY(orEventDestroy(s.made_event))
          .after(STEP(orEventCreate(&s.made_event))),
      TRY(orEventRecord(event, stream)).before(wait),
      TRY(orEventSynchronize(event)).after(record),
      TRY(orEventQuery(event)).after(wait),
      TRY(orEventElapsedTime(&s.ms, s.early, s.late)).after(wait),
      TRY(orStreamWriteValue32(stream, s.block, 1)).before(wait),
      TRY(orStreamWaitValue32(stream, s.block, 1))
          .after(STEP(orStreamWriteValue32(stream, s.block, 1)))
          .before(wait),
      TRY(orDeviceSynchronize()).after(work),
      TRY(openreg::launch(stream, "holds", [held = s.held] {})).before([&s] {
        const orError_t error = orDeviceSynchronize();
        return s.held.use_count() > 1 ? orErrorUnknown : error;
      }),
  };
}

std::vector<Tried> deviceCalls(Scene& s) {
  static constexpr auto ignore = [](const orRecord*, void*) {};
  static constexpr auto go_on = [](void*) { return 0; };
  static constexpr auto no_finding = [](const orFinding*, void*) {};
  const Step first = [] { return orSetDevice(0); };
  return {
      TRY(orGetDeviceCount(&s.number)),
      TRY(orGetDevice(&s.number)),
      TRY(orSetDevice(1)).before(first),
      TRY(orGetDeviceProperties(&s.properties, 0)),
      TRY(orDeviceGetDefaultStream(&s.made_stream, 1)),
      TRY(orDeviceGetStreamPriorityRange(&s.number, &s.number)),
      TRY(orDeviceReset()).after(STEP(orSetDevice(1))).before(first),
      TRY(orInject("alloc:1000000000")).before(STEP(orInject(""))),
      TRY(orSetWaitCallback(1'000'000'000, go_on, nullptr))
          .before(STEP(orSetWaitCallback(0, nullptr, nullptr))),
      TRY(orAddObserver(&s.observer, ignore, nullptr))
          .before(STEP(orRemoveObserver(s.observer))),
      TRY(orRemoveObserver(s.observer))
          .after(STEP(orAddObserver(&s.observer, ignore, nullptr))),
      TRY(orRangePush("a range")).before(STEP(orRangePop())),
      TRY(orRangePop()).after(STEP(orRangePush("a range"))),
      TRY(orFindRaces(1)).before(STEP(orFindRaces(0))),
      TRY(orVisitFindings(no_finding, nullptr)),
      TRY(orClearFindings()),
      TRY(orMemoryIsGuarded(&s.number)),
  };
}

std::vector<Tried> graphCalls(Scene& s) {
  const orStream_t& stream = s.stream.handle;
  const Step begin =
      STEP(orStreamBeginCapture(stream, orStreamCaptureModeGlobal));
  // What was captured can be drawn and run.
  const Step end = [&] {
    orError_t error = orStreamEndCapture(stream, &s.made_graph);
    if (error) return error;
    error = orGraphDebugDotPrint(s.made_graph, "/dev/null");
    if (!error) error = orGraphInstantiate(&s.made_exec, s.made_graph);
    if (!error) error = orGraphLaunch(s.made_exec, stream);
    if (!error) error = orDeviceSynchronize();
    if (!error) error = orGraphExecDestroy(s.made_exec);
    return error ? error : orGraphDestroy(s.made_graph);
  };
  const Step fork = [=, &s] {
    const orError_t error = begin();
    return error ? error : orEventRecord(s.event, stream);
  };
  const Step join = [=, &s] {
    openreg::launch(s.side, "on the side", [] {});
    orEventRecord(s.joined, s.side);
    const orError_t error = orStreamWaitEvent(stream, s.joined, 0);
    return error ? error : end();
  };
  Tried ends("orStreamEndCapture", end);
  ends.prepare = [=, &s] {
    const orError_t error = begin();
    return error ? error : orMemsetAsync(s.block, 0, 8, s.stream);
  };
  ends.ends_anyway = true;
  return {
      Tried("orStreamBeginCapture", begin).before(end),
      ends,
      TRY(orMemsetAsync(s.block, 0, 8, stream)).after(begin).before(end),
      TRY(openreg::launch(stream, "nothing", [] {})).after(begin).before(end),
      TRY(orEventRecord(s.event, stream)).after(begin).before(end),
      TRY(orStreamWaitEvent(s.side, s.event, 0)).after(fork).before(join),
      TRY(orStreamIsCapturing(stream, &s.status)).after(begin).before(end),
      TRY(orStreamGetCaptureId(stream, &s.id)).after(begin).before(end),
      TRY(orGraphGetNodeCount(s.graph, &s.size)),
      TRY(orGraphDebugDotPrint(s.graph, "/dev/null")),
      TRY(orGraphInstantiate(&s.made_exec, s.graph))
          .before(STEP(orGraphExecDestroy(s.made_exec))),
      TRY(orGraphExecDestroy(s.made_exec))
          .after(STEP(orGraphInstantiate(&s.made_exec, s.graph))),
      TRY(orGraphLaunch(s.exec, stream)).before(STEP(orDeviceSynchronize())),
  };
}

/// Fails the first allocation of a call, then the second, until none is left.
void tryEverywhere(const Tried& call) {
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
      for (const Tried& call : calls(scene)) tryEverywhere(call);
    }
  }
  ASSERT_EQ(orMemGetInfo(&after, &total), orSuccess);
  EXPECT_EQ(after, before);
}

// The threads are the parent's, so a call could wait for ever for a device, or
// for a lock that one of them held. What needs neither goes on.
TEST(EveryCall, is_refused_in_a_forked_child_if_it_needs_a_device_or_a_lock) {
  Scene scene;
  int words[2];
  ASSERT_EQ(pipe(words), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string others;
    for (const auto calls :
         {memoryCalls, streamCalls, deviceCalls, graphCalls}) {
      for (const Tried& call : calls(scene)) {
        const orError_t error = call.make();
        if (error != orErrorForked) others += call.name + " ";
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
            "orGetDeviceProperties orDeviceGetStreamPriorityRange "
            "orSetWaitCallback orAddObserver orRemoveObserver orRangePush "
            "orRangePop orMemoryIsGuarded ");
}

TEST(EveryCall, is_so_under_every_schedule_and_sanitizer) {
  expectAgain("EveryCall.is_refused*", {{"OPENREG_SCHEDULE=blocking"},
                                        {"OPENREG_SCHEDULE=seed:1"},
                                        {"OPENREG_SANITIZE=races"},
                                        {"OPENREG_SANITIZE=memory"}});
}

}  // namespace
