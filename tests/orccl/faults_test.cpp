// SPDX-License-Identifier: BSD-3-Clause
// Groups that cannot go on, and arguments that are refused.
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/orccl/ranks.h"

#include <atomic>
#include <csignal>

namespace {

using std::chrono::steady_clock;

double secondsSince(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

/// Rank 1 of three makes another call than the others.
void expectProblem(const Part& common, const Part& different,
                   const std::string& of_rank_0, const std::string& of_rank_1) {
  const std::string sentence = "rank 0 calls " + of_rank_0 + ", rank 1 calls " +
                               of_rank_1 + " (call number 2 of the group)";
  SCOPED_TRACE(sentence);
  onThreads(3, [&](Group& group, orStream_t stream) {
    group.barrier(stream);
    (group.rank() == 1 ? different : common)(group, stream);
    // Later calls end, too.
    group.meet(stream);
    EXPECT_TRUE(group.isAborted());
    EXPECT_EQ(group.problem(), sentence);
  });
}

/// A call about a block that is large enough, and a wait for it.
template <class Call>
Part calls(Call call) {
  return [=](Group& group, orStream_t stream) {
    const Block block(64 << 20);
    call(group, stream, block.data);
    ok(orStreamSynchronize(stream));
  };
}

Part reduces(size_t count, orcclDataType_t type, orcclRedOp_t reduction) {
  return calls([=](Group& group, orStream_t stream, void* data) {
    group.allReduce(stream, data, data, count, type, reduction);
  });
}

Part reducesTo(int root) {
  return calls([=](Group& group, orStream_t stream, void* data) {
    group.reduce(stream, data, data, 1, orcclInt32, orcclSum, root);
  });
}

Part broadcasts(int root) {
  return calls([=](Group& group, orStream_t stream, void* data) {
    group.broadcast(stream, data, 4, root);
  });
}

TEST(Disagreement, is_found_in_each_part_of_a_call) {
  const Part waits = [](Group& group, orStream_t stream) {
    group.barrier(stream);
  };
  const std::pair<Part, std::string> others[] = {
      {reduces(255, orcclFloat32, orcclSum),
       "all_reduce of 1020 bytes of float32 with sum"},
      {reduces(256, orcclInt32, orcclSum),
       "all_reduce of 1024 bytes of int32 with sum"},
      {reduces(256, orcclFloat32, orcclMax),
       "all_reduce of 1024 bytes of float32 with maximum"},
      // Here one rank has chunks for which the others do not wait.
      {reduces(16 << 20, orcclFloat32, orcclSum),
       "all_reduce of 67108864 bytes of float32 with sum"},
      {broadcasts(0), "broadcast of 4 bytes from rank 0"},
      {waits, "barrier"}};
  for (const auto& [other, said] : others)
    expectProblem(reduces(256, orcclFloat32, orcclSum), other,
                  "all_reduce of 1024 bytes of float32 with sum", said);
}

TEST(Disagreement, is_found_in_the_root) {
  expectProblem(broadcasts(0), broadcasts(2),
                "broadcast of 4 bytes from rank 0",
                "broadcast of 4 bytes from rank 2");
  expectProblem(reducesTo(1), reducesTo(2),
                "reduce of 4 bytes of int32 with sum to rank 1",
                "reduce of 4 bytes of int32 with sum to rank 2");
}

TEST(Disagreement, of_a_transfer_is_found_by_the_receiver) {
  onThreads(2, [](Group& group, orStream_t stream) {
    const Block block(20 << 20);
    for (const size_t bytes : {size_t{8}, size_t{20} << 20}) {
      const Transfer transfer{group.rank() == 0, 1 - group.rank(), block.data,
                              group.rank() == 0 ? bytes : 8};
      group.transfer(stream, {transfer});
    }
    ok(orStreamSynchronize(stream));
    EXPECT_EQ(group.isAborted(), group.rank() == 1);
    EXPECT_EQ(group.problem(),
              group.rank() == 0
                  ? ""
                  : "rank 0 sends 20971520 bytes to rank 1, which receives 8 "
                    "(transfer number 2 from rank 0 to rank 1)");
  });
}

/// While it lives, a device's first command of a name waits until a group has
/// been aborted.
class HeldUntilAbort {
 public:
  HeldUntilAbort(Group& group, int device, const char* name)
      : group_(group), device_(device), name_(name) {
    ok(orAddObserver(&observer_, &observe, this));
  }
  ~HeldUntilAbort() { orRemoveObserver(observer_); }
  HeldUntilAbort(const HeldUntilAbort&) = delete;
  HeldUntilAbort& operator=(const HeldUntilAbort&) = delete;

  std::atomic<bool> is_held{false};

 private:
  static void observe(const orRecord* record, void* data) {
    auto& self = *static_cast<HeldUntilAbort*>(data);
    if (record->phase != orCommandBegins || record->device != self.device_ ||
        record->name != self.name_ || self.is_held.exchange(true)) {
      return;
    }
    const auto begin = steady_clock::now();
    while (!self.group_.isAborted() && secondsSince(begin) < 10) sleepMs(1);
  }

  Group& group_;
  const int device_;
  const std::string name_;
  orObserver_t observer_ = nullptr;
};

void waitForAbort(Group& group) {
  const auto begin = steady_clock::now();
  while (!group.isAborted() && secondsSince(begin) < 10) sleepMs(1);
}

// A rank that waits for a send learns that the ranks disagree from what was
// sent, even if the sender has found it out before.
TEST(Disagreement, of_an_exchange_is_found_by_both_ranks) {
  std::atomic<bool> may_send = false;
  onThreads(2, [&](Group& group, orStream_t stream) {
    group.meet(stream);
    const Block block(8);
    const int peer = 1 - group.rank();
    const size_t sent = group.rank() == 0 ? 4 : 8;
    const auto exchange = [&] {
      group.transfer(stream, {{true, peer, block.data, sent},
                              {false, peer, block.data, sent}});
    };
    if (group.rank() == 0) {
      // Only the send can begin before the peer has sent.
      const HeldUntilAbort held(group, 0, "send_recv");
      exchange();
      while (!held.is_held) sleepMs(1);
      may_send = true;
      ok(orStreamSynchronize(stream));
    } else {
      while (!may_send) sleepMs(1);
      exchange();
      waitForAbort(group);
    }
    EXPECT_EQ(
        group.problem(),
        group.rank() == 0
            ? "rank 1 sends 8 bytes to rank 0, which receives 4 (transfer "
              "number 1 from rank 1 to rank 0)"
            : "rank 0 sends 4 bytes to rank 1, which receives 8 (transfer "
              "number 1 from rank 0 to rank 1)");
    group.abort();
  });
}

// The first send is not part of the exchange, so it is left out, and with it
// all that would come after it.
TEST(Disagreement,
     of_an_exchange_sends_nothing_after_a_send_that_was_left_out) {
  std::atomic<bool> has_ended = false;
  onThreads(2, [&](Group& group, orStream_t stream) {
    group.meet(stream);
    const Block block(8);
    const Stream other;
    if (group.rank() == 0) {
      ok(openreg::launch(other, "holds", [&] { waitForAbort(group); }));
      group.transfer(other, {{true, 1, block.data, 8}});
      group.transfer(stream,
                     {{true, 1, block.data, 8}, {false, 1, block.data, 4}});
      ok(orStreamSynchronize(stream));
      EXPECT_TRUE(group.isAborted());
      has_ended = true;
    } else {
      group.transfer(other, {{false, 0, block.data, 8}});
      group.transfer(stream,
                     {{true, 0, block.data, 8}, {false, 0, block.data, 8}});
      while (!has_ended) sleepMs(1);
      sleepMs(20);
      EXPECT_EQ(orStreamQuery(other), orErrorNotReady);
      EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
      group.abort();
      ok(orStreamSynchronize(other));
    }
  });
}

// A stage that the peer has not read is not written again.
TEST(Disagreement, of_an_exchange_leaves_what_was_sent_to_the_receiver) {
  constexpr size_t kBytes = 8 << 20;
  std::atomic<bool> has_ended = false;
  onThreads(2, [&](Group& group, orStream_t stream) {
    group.meet(stream);
    const Block block(kBytes);
    const Block small(8);
    if (group.rank() == 0) {
      group.transfer(
          stream, {{true, 1, block.data, kBytes}, {false, 1, small.data, 4}});
      ok(orStreamSynchronize(stream));
      EXPECT_TRUE(group.isAborted());
      has_ended = true;
    } else {
      group.transfer(stream, {{true, 0, small.data, 8}});
      while (!has_ended) sleepMs(1);
      group.transfer(stream, {{false, 0, block.data, kBytes}});
      sleepMs(20);
      EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
      group.abort();
    }
  });
}

TEST(Abort, ends_all_waits_of_one_rank) {
  onThreads(2, [](Group& group, orStream_t stream) {
    group.meet(stream);
    if (group.rank() == 1) return;
    const Block block(32 << 20);
    const std::vector<Transfer> transfers = {{true, 1, block.data, 16 << 20},
                                             {false, 1, block.data, 16 << 20}};
    const Stream other;
    group.transfer(other, transfers);
    group.allReduce(stream, block.data, block.data, 4 << 20, orcclFloat32,
                    orcclSum);
    sleepMs(20);
    EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
    EXPECT_FALSE(group.isAborted());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { group.abort(); });
    }
    for (auto& thread : threads) thread.join();
    ok(orStreamSynchronize(stream));
    ok(orStreamSynchronize(other));
    EXPECT_TRUE(group.isAborted());
    EXPECT_EQ(group.problem(), "");
    group.meet(stream);
  });
}

// Signals that are on their way must not lower what an abort has raised.
TEST(Abort, ends_waits_while_the_peers_go_on) {
  for (int turn = 0; turn < 100; ++turn) {
    onThreads(3, [&](Group& group, orStream_t stream) {
      group.meet(stream);
      for (int call = 0; call < 20; ++call) group.barrier(stream);
      if (turn % 3 != group.rank()) sleepMs(turn % 2);
      group.abort();
      ok(orStreamSynchronize(stream));
    });
  }
}

TEST(Abort, is_part_of_the_destruction_and_the_memory_goes_back) {
  waitUntilMemoryIsUsed(0);  // By the groups of other tests.
  Table table;
  const Stream stream;
  {
    std::vector<std::shared_ptr<Group>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(makeGroup(rank, 2, table.exchange()));
    }
    ranks[0]->barrier(stream);
    EXPECT_GT(usedMemory(), 0);
  }
  ok(orStreamSynchronize(stream));
  waitUntilMemoryIsUsed(0);
}

TEST(Abort, frees_the_memory_while_another_stream_is_captured) {
  waitUntilMemoryIsUsed(0);  // By the groups of other tests.
  Table table;
  const Stream stream, captured;
  auto group = makeGroup(0, 1, table.exchange());
  group->meet(stream);
  ok(orStreamBeginCapture(captured, orStreamCaptureModeGlobal));
  group.reset();
  waitUntilMemoryIsUsed(0);
  orGraph_t graph = nullptr;
  EXPECT_EQ(orStreamEndCapture(captured, &graph), orSuccess)
      << orGetErrorDetail();
  if (graph) ok(orGraphDestroy(graph));
}

TEST(Request, is_refused_if_its_operation_was_aborted) {
  onThreads(2, [](Group& group, orStream_t stream) {
    orcclRequest_t done = nullptr, dropped = nullptr;
    group.barrier(stream);
    check(orcclRequestRecord(&done, "first", group.comm, stream));
    ok(orStreamSynchronize(stream));
    if (group.rank() == 1) {
      check(orcclRequestFree(done));
      return;
    }
    group.barrier(stream);
    check(orcclRequestRecord(&dropped, "second", group.comm, stream));
    // It is checked before anybody can know how it ends.
    check(orcclRequestCheck(dropped, stream));
    check(orcclCommAbort(group.comm, "The test has seen enough."));
    check(orcclCommAbort(group.comm, "This reason comes too late."));
    EXPECT_EQ(orStreamSynchronize(stream), orErrorKernelRefused);
    // A request knows its end when the communicator has gone.
    orcclCommDestroy(std::exchange(group.comm, nullptr));
    check(orcclRequestCheck(done, stream));
    ok(orStreamSynchronize(stream));
    check(orcclRequestCheck(dropped, stream));
    EXPECT_EQ(orStreamSynchronize(stream), orErrorKernelRefused);
    const std::string sentence = orGetErrorDetail();
    EXPECT_NE(sentence.find("second has no result, because its group failed. "
                            "The test has seen enough."),
              std::string::npos)
        << sentence;
    check(orcclRequestFree(done));
    check(orcclRequestFree(dropped));
  });
}

TEST(Request, may_be_freed_when_there_is_none) {
  EXPECT_EQ(orcclRequestFree(nullptr), orcclSuccess);
}

TEST(Ending, a_killed_peer_is_named) {
  const auto statuses = onProcesses(2, [](Group& group, orStream_t stream) {
    EXPECT_EQ(group.endedPeer(), "");
    group.meet(stream);
    if (group.rank() == 1) {
      std::ofstream(std::string(std::getenv("OPENREG_TEST_FOLDER")) + "/pid")
          << getpid();
      kill(getpid(), SIGKILL);
    }
    const auto begin = steady_clock::now();
    group.barrier(stream);
    while (group.endedPeer().empty() && secondsSince(begin) < 10) sleepMs(1);
    std::string process;
    std::ifstream(std::string(std::getenv("OPENREG_TEST_FOLDER")) + "/pid") >>
        process;
    EXPECT_EQ(group.endedPeer(), "rank 1 (process " + process +
                                     ") has ended without leaving the group");
    EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
    group.abort();
    ok(orStreamSynchronize(stream));
    EXPECT_LT(secondsSince(begin), 10);
  });
  if (statuses.empty()) return;
  EXPECT_EQ(statuses[0], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[1]));
}

TEST(Ending, a_peer_that_left_is_not_named) {
  onGoodProcesses(2, [](Group& group, orStream_t stream) {
    group.meet(stream);
    // The other process ends when its test does.
    if (group.rank() == 1) return;
    for (int turn = 0; turn < 50; ++turn) {
      EXPECT_EQ(group.endedPeer(), "");
      sleepMs(10);
    }
  });
}

TEST(Ending, a_process_may_exit_with_work_pending) {
  const auto begin = steady_clock::now();
  onGoodProcesses(2, [](Group& group, orStream_t stream) {
    group.meet(stream);
    const Block block(16 << 20);
    if (group.rank() == 0) group.barrier(stream);
    const Transfer receive{false, 1, block.data, 16 << 20};
    if (group.rank() == 0) group.transfer(stream, {receive});
    std::exit(testing::Test::HasFailure());
  });
  EXPECT_LT(secondsSince(begin), 20);
}

TEST(Ending, a_lost_device_ends_the_waits) {
  onGoodProcesses(2, [](Group& group, orStream_t stream) {
    group.meet(stream);
    if (group.rank() == 1) return;
    group.barrier(stream);
    ok(orInject("lost:0@1"));
    EXPECT_EQ(openreg::launch(stream, "any", [] {}), orErrorDeviceLost);
    group.abort();
    EXPECT_EQ(orStreamSynchronize(stream), orErrorDeviceLost);
    // What the peer wrote when it left cannot be read any more.
    static_cast<void>(group.endedPeer());
    // The others of this process must not wait for the device either.
    std::exit(testing::Test::HasFailure());
  });
}

size_t countThreads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

TEST(Ending, of_a_communicator_on_a_lost_device_leaves_no_thread) {
  onGoodProcesses(1, [](Group&, orStream_t stream) {
    Table table;
    std::vector<std::shared_ptr<Group>> ranks;
    const std::vector<Stream> streams(2);
    for (int rank = 0; rank < 2; ++rank)
      ranks.push_back(makeGroup(rank, 2, table.exchange()));
    for (int rank = 0; rank < 2; ++rank) ranks[rank]->barrier(streams[rank]);
    for (const Stream& each : streams) ok(orStreamSynchronize(each));
    ok(orInject("lost:0@1"));
    EXPECT_EQ(openreg::launch(stream, "any", [] {}), orErrorDeviceLost);
    const size_t before = countThreads();
    ranks.clear();
    const auto begin = steady_clock::now();
    while (countThreads() > before && secondsSince(begin) < 3) sleepMs(1);
    EXPECT_LE(countThreads(), before);
    std::exit(testing::Test::HasFailure());
  });
}

/// The sentence with which `call` is refused.
template <class Call>
std::string refusalOf(orcclResult_t code, Call call) {
  try {
    call();
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.code, code);
    return refused.what();
  }
  return "nothing was refused";
}
#define REFUSAL(code, ...) refusalOf(code, [&] { __VA_ARGS__; })

TEST(Refusal, names_the_argument) {
  Table table;
  EXPECT_EQ(REFUSAL(orcclInvalidArgument, makeGroup(0, 65, table.exchange())),
            "A group on one host has 1 to 64 ranks; 65 were asked for.");
  EXPECT_EQ(REFUSAL(orcclInvalidArgument, makeGroup(2, 2, table.exchange())),
            "Rank 2 is not in a group with the ranks 0 to 1.");
  const auto group = makeGroup(0, 1, table.exchange());
  EXPECT_EQ(
      REFUSAL(orcclInvalidArgument, group->broadcast(nullptr, nullptr, 0, 1)),
      "The root is rank 1; the group has the ranks 0 to 0.");
  const auto reduce = [&](orcclDataType_t type, orcclRedOp_t reduction,
                          size_t count = 0) {
    return refusalOf(orcclInvalidArgument, [&] {
      group->allReduce(nullptr, nullptr, nullptr, count, type, reduction);
    });
  };
  EXPECT_EQ(reduce(orcclFloat32, orcclSum, size_t{1} << 62),
            "4611686018427387904 elements are more than memory has.");
  EXPECT_EQ(REFUSAL(orcclInvalidArgument,
                    check(orcclReduceLocal(nullptr, 0, nullptr, 4, orcclFloat32,
                                           orcclSum))),
            "A reduction of 0 inputs has no result.");
  EXPECT_EQ(reduce(orcclBool, orcclAvg),
            "Numbers of type boolean have no average.");
  EXPECT_EQ(reduce(orcclFloat16, orcclBxor),
            "Numbers of type float16 have no bitwise xor.");
  EXPECT_EQ(reduce(orcclBytes, orcclSum), "Numbers of type bytes have no sum.");
  EXPECT_FALSE(group->isAborted());
}

TEST(Refusal, of_transfers_names_the_rank) {
  Table table;
  const auto group = makeGroup(0, 1, table.exchange());
  const auto transfer = [&](std::vector<Transfer> transfers) {
    return REFUSAL(orcclInvalidArgument, group->transfer(nullptr, transfers));
  };
  EXPECT_EQ(transfer({{true, 3, nullptr, 0}}),
            "The receiver is rank 3; the group has the ranks 0 to 0.");
  EXPECT_EQ(transfer({{false, -1, nullptr, 0}}),
            "The sender is rank -1; the group has the ranks 0 to 0.");
  EXPECT_EQ(transfer({{true, 0, nullptr, 0}}),
            "Rank 0 has in one call 1 sends to itself and 0 receives from "
            "itself.");
  EXPECT_EQ(transfer({{true, 0, nullptr, 8}, {false, 0, nullptr, 4}}),
            "Rank 0 sends 8 bytes to itself, and receives 4.");
  EXPECT_FALSE(group->isAborted());
}

TEST(Refusal, of_a_send_to_itself_names_the_rank_that_calls) {
  onThreads(2, [](Group& group, orStream_t stream) {
    const std::string rank = std::to_string(group.rank());
    const Block block(8);
    const std::vector<Transfer> transfers{{true, group.rank(), block.data, 8},
                                          {false, group.rank(), block.data, 4}};
    EXPECT_EQ(REFUSAL(orcclInvalidArgument, group.transfer(stream, transfers)),
              "Rank " + rank + " sends 8 bytes to itself, and receives 4.");
  });
}

TEST(Refusal, of_a_group_of_calls_says_what_is_wrong_with_it) {
  Table table;
  const auto one = makeGroup(0, 1, table.exchange());
  const auto end = [] { check(orcclGroupEnd()); };
  EXPECT_EQ(refusalOf(orcclInvalidUsage, end),
            "A group ends that has not begun; call orcclGroupStart first.");
  Table other;
  const auto two = makeGroup(0, 1, other.exchange());
  check(orcclGroupStart());
  check(orcclSend(nullptr, 0, orcclBytes, 0, one->comm, nullptr));
  const std::string sentence =
      "The sends and receives of a group are on one stream of one "
      "communicator.";
  EXPECT_EQ(refusalOf(orcclInvalidUsage,
                      [&] {
                        check(orcclRecv(nullptr, 0, orcclBytes, 0, two->comm,
                                        nullptr));
                      }),
            sentence);
  EXPECT_EQ(refusalOf(orcclInvalidUsage, end), sentence);
  check(orcclGroupStart());
  const orcclResult_t no_type =
      orcclSend(nullptr, 1, orcclDataType_t(99), 0, one->comm, nullptr);
  EXPECT_EQ(no_type, orcclInvalidArgument);
  const std::string first = orcclGetLastError();
  EXPECT_NE(orcclBarrier(nullptr, nullptr), orcclSuccess);
  EXPECT_EQ(refusalOf(orcclInvalidArgument, end), first);
  EXPECT_EQ(
      REFUSAL(orcclInvalidArgument, check(orcclBarrier(nullptr, nullptr))),
      "The communicator is null.");
}

TEST(Refusal, of_a_call_before_the_ranks_know_each_other_says_what_to_call) {
  orcclComm_t comm = nullptr;
  orcclCard_t card;
  check(orcclCommInitRank(&comm, 2, 1, &card));
  EXPECT_EQ(REFUSAL(orcclInvalidUsage, check(orcclBarrier(comm, nullptr))),
            "The communicator does not know the other ranks; call "
            "orcclCommConnect before.");
  check(orcclCommDestroy(comm));
}

TEST(Refusal, of_a_capture_says_what_to_do) {
  Table table;
  const auto group = makeGroup(0, 1, table.exchange());
  const Stream stream;
  ok(orStreamBeginCapture(stream, orStreamCaptureModeRelaxed));
  EXPECT_EQ(REFUSAL(orcclInvalidUsage, group->barrier(stream)),
            "A graph cannot hold communication with other processes; call it "
            "before or after the capture.");
  orGraph_t graph;
  ok(orStreamEndCapture(stream, &graph));
  ok(orGraphDestroy(graph));
}

TEST(Connecting, to_a_rank_that_has_left_is_refused) {
  waitUntilMemoryIsUsed(0);  // By the groups of other tests.
  Table table;
  const Stream stream;
  const auto group = makeGroup(1, 2, table.exchange());
  const size_t used = usedMemory();
  makeGroup(0, 2, table.exchange());
  waitUntilMemoryIsUsed(used);
  const std::string said = REFUSAL(orcclRemoteError, group->barrier(stream));
  EXPECT_EQ(said.rfind("Rank 0 has left the group before rank 1 has connected "
                       "to it, or has published a wrong address",
                       0),
            0u)
      << said;
}

TEST(Connecting, to_a_rank_that_has_ended_is_refused) {
  const auto statuses = onProcesses(2, [](Group& group, orStream_t stream) {
    if (group.rank() == 0) _exit(0);  // It has published its mailbox.
    const auto exchange = exchangeIn(std::getenv("OPENREG_TEST_FOLDER"));
    int process = 0;
    std::memcpy(&process, exchange.lookUp("mailbox/0").data(), sizeof(process));
    const std::string program = "/proc/" + std::to_string(process) + "/exe";
    const auto begin = steady_clock::now();
    while (!access(program.c_str(), F_OK) && secondsSince(begin) < 10)
      sleepMs(1);
    EXPECT_EQ(REFUSAL(orcclRemoteError, group.barrier(stream)),
              "Rank 0 cannot be connected to. The memory of process " +
                  std::to_string(process) +
                  " cannot be opened; it has ended, or is another user's.");
  });
  if (statuses.empty()) return;
  EXPECT_EQ(statuses, (std::vector<int>{0, 0}));
}

TEST(Connecting, to_a_rank_that_has_left_after_it_sent_something_finds_it) {
  Table table;
  Arena arena;
  Arena::current() = &arena;
  const Stream stream;
  const Block sent(4), received(4);
  const auto receiver = makeGroup(1, 2, table.exchange());
  {
    const auto sender = makeGroup(0, 2, table.exchange());
    write(sent, std::vector<int>{42}, stream);
    sender->transfer(stream, {{true, 1, sent.data, 4}});
    ok(orStreamSynchronize(stream));
  }
  sleepMs(100);
  receiver->transfer(stream, {{false, 0, received.data, 4}});
  EXPECT_EQ(read<int>(received, 1, stream), std::vector<int>{42});
  EXPECT_EQ(receiver->endedPeer(), "");
}

/// What rank 0 says of a group in which rank 1 has published `card`.
std::string saidOf(const std::function<void(std::string&)>& change,
                   orcclResult_t code = orcclInternalError) {
  Table table;
  const Stream stream;
  const auto group = makeGroup(0, 2, table.exchange());
  std::string card = table.exchange().lookUp("mailbox/0");
  change(card);
  table.exchange().publish("mailbox/1", card);
  return refusalOf(code, [&] { group->barrier(stream); });
}

template <class Value>
void put(std::string& card, size_t place, Value value) {
  std::memcpy(card.data() + place, &value, sizeof(value));
}

TEST(Connecting, to_an_address_that_is_no_mailbox_is_refused) {
  void* small = nullptr;
  ok(orMalloc(&small, 64));
  int here = 0;
  for (void* address : {small, static_cast<void*>(&here),
                        reinterpret_cast<void*>(0x1000), (void*)nullptr}) {
    const std::string said = saidOf(
        [&](std::string& card) { put(card, 8, address); }, orcclRemoteError);
    std::ostringstream sentence;
    sentence
        << "Rank 1 has left the group before rank 0 has connected to it, or "
           "has published a wrong address: no mailbox of this group begins at "
        << static_cast<const void*>(address) << ".";
    EXPECT_EQ(said, sentence.str());
  }
  ok(orFree(small));
}

TEST(Connecting, in_vain_keeps_nobody_who_was_found) {
  waitUntilMemoryIsUsed(0);  // By the groups of other tests.
  Table table;
  const Stream stream;
  auto first = makeGroup(0, 3, table.exchange());
  auto third = makeGroup(2, 3, table.exchange());
  const size_t used = usedMemory();
  auto second = makeGroup(1, 3, table.exchange());
  std::string card = table.exchange().lookUp("mailbox/2");
  const std::string right = card;
  put<void*>(card, 8, nullptr);
  table.exchange().publish("mailbox/2", card);
  REFUSAL(orcclRemoteError, first->barrier(stream));  // Rank 1 is mapped.
  table.exchange().publish("mailbox/2", right);
  second.reset();
  waitUntilMemoryIsUsed(used);
  const std::string said = REFUSAL(orcclRemoteError, first->barrier(stream));
  EXPECT_EQ(said.rfind("Rank 1 has left the group before rank 0", 0), 0u)
      << said;
  first.reset();
  third.reset();
  waitUntilMemoryIsUsed(0);
}

TEST(Connecting, to_memory_of_another_size_is_refused) {
  void* small = nullptr;
  ok(orMalloc(&small, 64));
  orIpcMemHandle_t handle;
  ok(orIpcGetMemHandle(&handle, small));
  const std::string said = saidOf([&](std::string& card) {
    put(card, 0, getpid() ^ 1);  // Another process than this one.
    put(card, card.size() - sizeof(handle), handle);
  });
  EXPECT_EQ(said,
            "Rank 1 has published memory of another size than a mailbox of "
            "this group has.");
  ok(orFree(small));
}

}  // namespace
