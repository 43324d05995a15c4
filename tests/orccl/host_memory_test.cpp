// SPDX-License-Identifier: BSD-3-Clause
// The host has no memory for the library: a call is refused with a sentence,
// and the group then works, or was aborted by the call.
#include "ranks.h"
#include "torch_openreg/tests/openreg/scarce_new.h"

namespace {

using Call = std::function<orcclResult_t()>;

/// A group of one rank, and what its calls are about.
struct Alone {
  static constexpr size_t kCount = 1000;

  Alone() {
    check(orcclCommInitRank(&comm, 1, 0, &card));
    ok(orMalloc(&in, kCount * sizeof(float)));
    ok(orMalloc(&out, kCount * sizeof(float)));
    ok(orMemset(in, 0, kCount * sizeof(float)));
  }
  ~Alone() {
    EXPECT_EQ(orDeviceSynchronize(), orSuccess) << orGetErrorDetail();
    EXPECT_EQ(orcclCommDestroy(comm), orcclSuccess);
    orFree(in);
    orFree(out);
  }

  orcclResult_t connect() { return orcclCommConnect(comm, &card); }

  orcclComm_t comm = nullptr;
  orcclCard_t card{};
  void *in = nullptr, *out = nullptr;
  Stream stream;
};

std::vector<std::pair<std::string, Call>> callsOf(Alone& a) {
  static constexpr size_t n = Alone::kCount;
  static constexpr auto type = orcclFloat32;
#define CALL(...)                              \
  {                                            \
#__VA_ARGS__, [&a] { return __VA_ARGS__; } \
  }
  return {
      CALL(orcclAllReduce(a.in, a.out, n, type, orcclSum, a.comm, a.stream)),
      // This reduction is refused.
      CALL(orcclAllReduce(a.in, a.out, n, orcclComplex64, orcclSum, a.comm,
                          a.stream)),
      CALL(orcclReduce(a.in, a.out, n, type, orcclMax, 0, a.comm, a.stream)),
      CALL(orcclBroadcast(a.in, n, type, 0, a.comm, a.stream)),
      CALL(orcclAllGather(a.in, &a.out, n, type, a.comm, a.stream)),
      CALL(orcclReduceScatter(&a.in, a.out, n, type, orcclSum, a.comm,
                              a.stream)),
      CALL(orcclBarrier(a.comm, a.stream)),
      CALL(orcclCommCheckPeers(a.comm)),
      {"orcclGroupEnd",
       [&a] {
         orcclGroupStart();
         orcclSend(a.in, n, type, 0, a.comm, a.stream);
         orcclRecv(a.out, n, type, 0, a.comm, a.stream);
         return orcclGroupEnd();
       }},
      {"orcclRequestRecord",
       [&a] {
         orcclRequest_t request = nullptr;
         const auto error = orcclRequestRecord(&request, "x", a.comm, a.stream);
         return error ? error : orcclRequestFree(request);
       }},
      {"orcclCommConnect", [&a] { return a.connect(); }},
      {"orcclCommInitRank",
       [] {
         orcclComm_t made = nullptr;
         orcclCard_t card;
         const auto error = orcclCommInitRank(&made, 1, 0, &card);
         return error ? error : orcclCommDestroy(made);
       }},
  };
}

TEST(HostMemory, a_group_that_cannot_be_made_keeps_no_memory_of_the_device) {
  Alone();  // The device starts its threads, which later tests need.
  waitUntilMemoryIsUsed(0);
  scarce::only = std::this_thread::get_id();
  scarce::fails_once = true;  // The thread that frees needs memory, too.
  orcclComm_t made = nullptr;
  orcclCard_t card;
  int allocation = 0;
  for (scarce::left = 0; orcclCommInitRank(&made, 1, 0, &card) != orcclSuccess;
       scarce::left = ++allocation) {
    scarce::left = scarce::kAll;
    SCOPED_TRACE("allocation " + std::to_string(allocation));
    ASSERT_NO_FATAL_FAILURE(waitUntilMemoryIsUsed(0));
  }
  scarce::left = scarce::kAll;
  EXPECT_GT(allocation, 4);
  EXPECT_EQ(orcclCommDestroy(made), orcclSuccess);
  scarce::only = std::thread::id();
}

TEST(HostMemory, an_abort_without_it_has_no_words) {
  Alone alone;
  check(alone.connect());
  scarce::only = std::this_thread::get_id();
  scarce::left = 0;
  const orcclResult_t result = orcclCommAbort(
      alone.comm, "a reason that does not fit into a short word");
  scarce::left = scarce::kAll;
  scarce::only = std::thread::id();
  EXPECT_EQ(result, orcclSuccess);
  orcclResult_t aborted = orcclSuccess;
  orcclCommGetAsyncError(alone.comm, &aborted);
  EXPECT_EQ(aborted, orcclAborted);
}

TEST(HostMemory, a_call_without_it_is_refused_and_ends_no_process) {
  // A group that has left ends on a thread of its own.
  scarce::only = std::this_thread::get_id();
  size_t trials = 0;
  const size_t count = callsOf(*std::make_unique<Alone>()).size();
  for (size_t number = 0; number < count; ++number) {
    for (bool once : {true, false}) {
      for (int allocation = 0;; ++allocation) {
        ASSERT_LT(allocation, 200);
        Alone alone;
        const auto calls = callsOf(alone);
        const auto& [name, call] = calls[number];
        const auto connect = [&] { check(alone.connect()); };
        if (name != "orcclCommConnect") connect();
        SCOPED_TRACE(name + ", allocation " + std::to_string(allocation));
        scarce::fails_once = once;
        scarce::failed = false;
        scarce::left = allocation;
        const orcclResult_t error = call();
        scarce::left = scarce::kAll;
        const std::string sentence = orcclGetLastError();
        orcclResult_t aborted = orcclSuccess;
        orcclCommGetAsyncError(alone.comm, &aborted);
        if (error) {
          EXPECT_EQ(sentence.back(), '.') << sentence;
        } else {
          EXPECT_EQ(aborted, orcclSuccess);
        }
        connect();
        // After an abort, a call completes without effect.
        const orcclResult_t next = orcclBarrier(alone.comm, alone.stream);
        EXPECT_EQ(next, orcclSuccess) << orcclGetLastError();
        EXPECT_EQ(orStreamSynchronize(alone.stream), orSuccess)
            << orGetErrorDetail();
        trials += scarce::failed;
        if (!scarce::failed) break;
      }
    }
  }
  scarce::only = std::thread::id();
  EXPECT_GT(trials, 50u);
  RecordProperty("trials", static_cast<int>(trials));
}

}  // namespace
