// SPDX-License-Identifier: BSD-3-Clause
// Every collective against a computation on the host.
#include "torch_openreg/common/orccl/collectives/half.h"
#include "torch_openreg/tests/orccl/ranks.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>

namespace openreg::orccl {
static bool operator==(Half a, Half b) { return a.bits == b.bits; }
static bool operator==(Bfloat16 a, Bfloat16 b) { return a.bits == b.bits; }
}  // namespace openreg::orccl

namespace {

using openreg::orccl::Bfloat16;
using openreg::orccl::Half;

constexpr orcclRedOp_t kReductions[] = {
    orcclSum, orcclAvg,  orcclProd, orcclMin,
    orcclMax, orcclBand, orcclBor,  orcclBxor,
};

template <class T>
T valueOf(int rank, size_t i) {
  const auto number = static_cast<int>((rank * 7 + i * 3 + i / 7) % 5);
  if constexpr (std::is_same_v<T, bool>) return number % 2;
  return static_cast<T>(std::is_unsigned_v<T> ? number : number - 2);
}

template <class T>
std::vector<T> valuesOf(int rank, size_t count, size_t first = 0) {
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(valueOf<T>(rank, first + i));
  }
  return values;
}

/// A number of the host that is wide enough for all ranks' numbers.
template <class T>
using Exact =
    std::conditional_t<std::is_integral_v<T>, int64_t,
                       std::conditional_t<sizeof(T) == 8, double, float>>;

template <class T>
T reduceOnHost(const std::vector<T>& values, orcclRedOp_t reduction) {
  using E = Exact<T>;
  E total = static_cast<E>(values[0]);
  for (size_t r = 1; r < values.size(); ++r) {
    const E next = static_cast<E>(values[r]);
    switch (reduction) {
      case orcclSum:
      case orcclAvg:
        total += next;
        break;
      case orcclProd:
        total *= next;
        break;
      case orcclMin:
        total = std::min(total, next);
        break;
      case orcclMax:
        total = std::max(total, next);
        break;
      default:
        if constexpr (std::is_integral_v<T>) {
          if (reduction == orcclBand) total &= next;
          if (reduction == orcclBor) total |= next;
          if (reduction == orcclBxor) total ^= next;
        }
    }
  }
  if (reduction == orcclAvg) {
    total /= static_cast<E>(values.size());
  }
  return static_cast<T>(total);
}

template <class T>
std::vector<T> expectedOf(int size, size_t count, orcclRedOp_t reduction,
                          size_t first = 0) {
  std::vector<T> expected;
  for (size_t i = first; i < first + count; ++i) {
    std::vector<T> values;
    for (int rank = 0; rank < size; ++rank) {
      values.push_back(valueOf<T>(rank, i));
    }
    expected.push_back(reduceOnHost(values, reduction));
  }
  return expected;
}

// std::vector<bool> is no array.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
std::vector<Stored<T>> stored(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

template <class T>
void checkReductions(Group& group, orStream_t stream, orcclDataType_t type,
                     size_t count, std::vector<orcclRedOp_t> reductions) {
  using S = Stored<T>;
  const int size = group.size();
  for (orcclRedOp_t reduction : reductions) {
    if (orcclCheckReduction(type, reduction)) continue;
    SCOPED_TRACE("reduction " + std::to_string(reduction) + " of " +
                 std::to_string(count) + " of type " + std::to_string(type));
    const auto expected = stored(expectedOf<T>(size, count, reduction));
    const auto mine = stored(valuesOf<T>(group.rank(), count));
    const Block input(count * sizeof(S)), output(count * sizeof(S));
    write(input, mine, stream);
    group.allReduce(stream, output.data, input.data, count, type, reduction);
    EXPECT_EQ(read<S>(output, count, stream), expected);
    EXPECT_EQ(read<S>(input, count, stream), mine);
    const int root = size - 1;
    group.reduce(stream, group.rank() == root ? input.data : nullptr,
                 input.data, count, type, reduction, root);
    EXPECT_EQ(read<S>(input, count, stream),
              group.rank() == root ? expected : mine);
    write(input, mine, stream);
    group.allReduce(stream, input.data, input.data, count, type, reduction);
    EXPECT_EQ(read<S>(input, count, stream), expected);
    // The input of rank r begins with number r.
    const Block all((count + size) * sizeof(S));
    write(all, stored(valuesOf<T>(group.rank(), count + size)), stream);
    std::vector<const void*> inputs;
    for (int rank = 0; rank < size; ++rank) {
      inputs.push_back(static_cast<S*>(all.data) + rank);
    }
    group.reduceScatter(stream, output.data, inputs, count, type, reduction);
    EXPECT_EQ(read<S>(output, count, stream),
              stored(expectedOf<T>(size, count, reduction, group.rank())));
  }
}

void checkAllTypes(Group& group, orStream_t stream) {
  const std::vector<orcclRedOp_t> all(std::begin(kReductions),
                                      std::end(kReductions));
  const auto check = [&]<class T>(T, orcclDataType_t type) {
    for (size_t count : {0, 1, 3, 1000, 33'001}) {
      checkReductions<T>(group, stream, type, count, all);
    }
  };
  check(float{}, orcclFloat32);
  check(double{}, orcclFloat64);
  check(Half{}, orcclFloat16);
  check(Bfloat16{}, orcclBfloat16);
  check(int8_t{}, orcclInt8);
  check(int16_t{}, orcclInt16);
  check(int32_t{}, orcclInt32);
  check(int64_t{}, orcclInt64);
  check(uint8_t{}, orcclUint8);
  check(uint16_t{}, orcclUint16);
  check(uint32_t{}, orcclUint32);
  check(uint64_t{}, orcclUint64);
  check(bool{}, orcclBool);
}

void checkMoves(Group& group, orStream_t stream, size_t bytes) {
  SCOPED_TRACE(std::to_string(bytes) + " bytes");
  const int size = group.size();
  const auto mine = valuesOf<uint8_t>(group.rank(), bytes);
  const Block data(bytes);
  write(data, mine, stream);
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<void*> outputs;
  for (int rank = 0; rank < size; ++rank) {
    blocks.push_back(std::make_unique<Block>(bytes));
    outputs.push_back(blocks.back()->data);
  }
  group.allGather(stream, outputs, data.data, bytes);
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(read<uint8_t>(*blocks[rank], bytes, stream),
              valuesOf<uint8_t>(rank, bytes));
  }
  for (int root : {0, size - 1}) {
    write(data, mine, stream);
    group.broadcast(stream, data.data, bytes, root);
    EXPECT_EQ(read<uint8_t>(data, bytes, stream),
              valuesOf<uint8_t>(root, bytes));
  }
  group.barrier(stream);
}

/// Each rank sends to the next, and to itself.
void checkTransfers(Group& group, orStream_t stream, size_t bytes) {
  SCOPED_TRACE(std::to_string(bytes) + " bytes");
  const int size = group.size();
  const int next = (group.rank() + 1) % size;
  const int last = (group.rank() + size - 1) % size;
  const Block sent(bytes), received(bytes);
  write(sent, valuesOf<uint8_t>(group.rank(), bytes), stream);
  const std::vector<Transfer> transfers = {{false, last, received.data, bytes},
                                           {true, next, sent.data, bytes}};
  group.transfer(stream, transfers);
  EXPECT_EQ(read<uint8_t>(received, bytes, stream),
            valuesOf<uint8_t>(last, bytes));
}

void checkSizes(Group& group, orStream_t stream) {
  // The sizes of a chunk.
  const size_t stage = 1 << 20, slot = 256 << 10;
  for (size_t count :
       {size_t{8192}, size_t{8193}, stage / 4 - 1, stage / 4, stage / 4 + 1,
        stage / 2, 3 * stage / 4 + 5, size_t{1'700'001}}) {
    checkReductions<float>(group, stream, orcclFloat32, count,
                           {orcclSum, orcclAvg});
  }
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{1001}, stage - 1,
                       stage, stage + 1, 7 * stage + 3}) {
    checkMoves(group, stream, bytes);
  }
  for (size_t bytes : {size_t{0}, size_t{1}, slot, slot + 1, 9 * slot + 5}) {
    checkTransfers(group, stream, bytes);
  }
}

TEST(Collectives, agree_with_the_host_for_all_types_and_reductions) {
  for (int size : {1, 2, 3}) onThreads(size, checkAllTypes);
}

TEST(Collectives, agree_with_the_host_for_all_sizes) {
  for (int size : {1, 3}) onThreads(size, checkSizes);
}

TEST(Collectives, agree_with_the_host_between_processes) {
  onGoodProcesses(2, [](Group& group, orStream_t stream) {
    checkAllTypes(group, stream);
    checkSizes(group, stream);
  });
}

void checkBriefly(Group& group, orStream_t stream) {
  for (int turn = 0; turn < 3; ++turn) {
    for (size_t count : {0, 3, 20'001, 400'001}) {
      checkReductions<float>(group, stream, orcclFloat32, count, {orcclSum});
      checkMoves(group, stream, count);
      checkTransfers(group, stream, 4 * count);
    }
  }
}

TEST(Collectives, of_eight_ranks_agree_with_the_host) {
  onThreads(8, checkBriefly);
}

TEST(Collectives, survive_the_overflow_of_their_counters) {
  onThreads(2, checkBriefly);
  onThreads(3, checkBriefly);
}

void checkUnder(const std::string& schedule) {
  onGoodProcesses(3, checkBriefly,
                  {"OPENREG_SCHEDULE=" + schedule, "OPENREG_DEVICE_THREADS=1"});
}

TEST(Collectives, agree_with_the_host_on_one_thread) { checkUnder("threads"); }
TEST(Collectives, agree_with_the_host_if_launches_block) {
  checkUnder("blocking");
}
TEST(Collectives, agree_with_the_host_in_random_order) { checkUnder("seed:1"); }

TEST(Collectives, use_streams_in_the_order_of_the_calls) {
  onThreads(2, [](Group& group, orStream_t stream) {
    const Stream other;
    orEvent_t event;
    ok(orEventCreate(&event));
    const Block data(4);
    write(data, std::vector<int>{group.rank()}, stream);
    const orStream_t streams[] = {stream, other.handle};
    for (int turn = 0; turn < 20; ++turn) {
      ok(orEventRecord(event, streams[turn % 2]));
      ok(orStreamWaitEvent(streams[(turn + 1) % 2], event, 0));
      group.allReduce(streams[(turn + 1) % 2], data.data, data.data, 1,
                      orcclInt32, orcclSum);
    }
    EXPECT_EQ(read<int>(data, 1, stream), std::vector<int>{1 << 19});
    orEventDestroy(event);
  });
}

TEST(Collectives, of_groups_that_are_used_in_different_orders_do_not_wait) {
  Table first, second;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Arena arena;
      Arena::current() = &arena;
      const Stream streams[2];
      const auto one = makeGroup(rank, 2, first.exchange());
      const auto two = makeGroup(rank, 2, second.exchange());
      (rank ? one : two)->barrier(streams[rank ? 0 : 1]);
      (rank ? two : one)->barrier(streams[rank ? 1 : 0]);
      for (const auto& stream : streams) ok(orStreamSynchronize(stream));
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST(Transfers,
     arrive_in_order_while_more_are_outstanding_than_the_stages_hold) {
  onThreads(2, [](Group& group, orStream_t stream) {
    constexpr int kTransfers = 40;
    const int peer = 1 - group.rank();
    const Stream sends, receives;
    const Block sent(kTransfers * 1024), received(kTransfers * 1024);
    write(sent, valuesOf<uint8_t>(group.rank(), kTransfers * 1024), stream);
    ok(orStreamSynchronize(stream));
    for (int i = 0; i < kTransfers; ++i) {
      const Transfer receive{
          false, peer, static_cast<char*>(received.data) + i * 1024, 1024};
      group.transfer(receives, {receive});
    }
    for (int i = 0; i < kTransfers; ++i) {
      const Transfer send{true, peer, static_cast<char*>(sent.data) + i * 1024,
                          1024};
      group.transfer(sends, {send});
    }
    // A group that is destroyed drops its sends.
    ok(orStreamSynchronize(sends));
    EXPECT_EQ(read<uint8_t>(received, kTransfers * 1024, receives),
              valuesOf<uint8_t>(peer, kTransfers * 1024));
  });
}

TEST(Transfers, of_one_call_may_be_many_of_different_sizes) {
  onThreads(3, [](Group& group, orStream_t stream) {
    constexpr size_t kSizes[] = {700'000, 3, 0, 300'001};
    const size_t all = 2'000'000;
    const Block sent(all), received(3 * all);
    write(sent, valuesOf<uint8_t>(group.rank(), all), stream);
    std::vector<Transfer> transfers;
    for (int peer = 0; peer < 3; ++peer) {
      size_t begin = 0;
      for (size_t size : kSizes) {
        transfers.push_back(
            {true, peer, static_cast<char*>(sent.data) + begin, size});
        transfers.push_back(
            {false, peer,
             static_cast<char*>(received.data) + peer * all + begin, size});
        begin += size;
      }
    }
    group.transfer(stream, transfers);
    const auto values = read<uint8_t>(received, 3 * all, stream);
    for (int peer = 0; peer < 3; ++peer) {
      const auto begin = values.begin() + peer * all;
      EXPECT_EQ(std::vector<uint8_t>(begin, begin + 1'000'004),
                valuesOf<uint8_t>(peer, 1'000'004));
    }
  });
}

TEST(Collectives, of_eight_processes_agree_with_the_host) {
  onGoodProcesses(8, checkBriefly);
}

}  // namespace
