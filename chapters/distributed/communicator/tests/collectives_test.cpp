// SPDX-License-Identifier: BSD-3-Clause
// Every collective against a computation on the host.
#include "torch_openreg/chapters/distributed/communicator/mailbox.h"
#include "torch_openreg/chapters/distributed/communicator/reduce.h"
#include "torch_openreg/chapters/distributed/communicator/tests/ranks.h"

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>

namespace {

using openreg::isDefined;
using openreg::nameOf;
using openreg::NumberType;
using openreg::Reduction;
using openreg::sizeOf;
using openreg::Transfer;

constexpr Reduction kReductions[] = {
    Reduction::sum,     Reduction::average, Reduction::product,
    Reduction::minimum, Reduction::maximum, Reduction::bit_and,
    Reduction::bit_or,  Reduction::bit_xor,
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
T reduceOnHost(const std::vector<T>& values, Reduction reduction) {
  using E = Exact<T>;
  E total = static_cast<E>(values[0]);
  for (size_t r = 1; r < values.size(); ++r) {
    const E next = static_cast<E>(values[r]);
    switch (reduction) {
      case Reduction::sum:
      case Reduction::average:
        total += next;
        break;
      case Reduction::product:
        total *= next;
        break;
      case Reduction::minimum:
        total = std::min(total, next);
        break;
      case Reduction::maximum:
        total = std::max(total, next);
        break;
      default:
        if constexpr (std::is_integral_v<T>) {
          if (reduction == Reduction::bit_and) total &= next;
          if (reduction == Reduction::bit_or) total |= next;
          if (reduction == Reduction::bit_xor) total ^= next;
        }
    }
  }
  if (reduction == Reduction::average) {
    total /= static_cast<E>(values.size());
  }
  return static_cast<T>(total);
}

template <class T>
std::vector<T> expectedOf(int size, size_t count, Reduction reduction,
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
void checkReductions(Collectives& group, orStream_t stream, NumberType type,
                     size_t count, std::vector<Reduction> reductions) {
  using S = Stored<T>;
  const int size = group.size();
  for (Reduction reduction : reductions) {
    if (!isDefined(reduction, type)) continue;
    SCOPED_TRACE(std::string(nameOf(reduction)) + " of " +
                 std::to_string(count) + " " + nameOf(type));
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

void checkAllTypes(Collectives& group, orStream_t stream) {
  const std::vector<Reduction> all(std::begin(kReductions),
                                   std::end(kReductions));
  const auto check = [&]<class T>(T, NumberType type) {
    for (size_t count : {0, 1, 3, 1000, 33'001}) {
      checkReductions<T>(group, stream, type, count, all);
    }
  };
  check(float{}, NumberType::float32);
  check(double{}, NumberType::float64);
  check(c10::Half{}, NumberType::float16);
  check(c10::BFloat16{}, NumberType::bfloat16);
  check(int8_t{}, NumberType::int8);
  check(int16_t{}, NumberType::int16);
  check(int32_t{}, NumberType::int32);
  check(int64_t{}, NumberType::int64);
  check(uint8_t{}, NumberType::uint8);
  check(uint16_t{}, NumberType::uint16);
  check(uint32_t{}, NumberType::uint32);
  check(uint64_t{}, NumberType::uint64);
  check(bool{}, NumberType::boolean);
}

void checkMoves(Collectives& group, orStream_t stream, size_t bytes) {
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
void checkTransfers(Collectives& group, orStream_t stream, size_t bytes) {
  SCOPED_TRACE(std::to_string(bytes) + " bytes");
  const int size = group.size();
  const int next = (group.rank() + 1) % size;
  const int last = (group.rank() + size - 1) % size;
  const Block sent(bytes), received(bytes);
  write(sent, valuesOf<uint8_t>(group.rank(), bytes), stream);
  const Transfer transfers[] = {{false, last, received.data, bytes},
                                {true, next, sent.data, bytes}};
  group.transfer(stream, transfers);
  EXPECT_EQ(read<uint8_t>(received, bytes, stream),
            valuesOf<uint8_t>(last, bytes));
}

void checkSizes(Collectives& group, orStream_t stream) {
  const size_t stage = openreg::kStageBytes, slot = openreg::kSlotBytes;
  for (size_t count :
       {size_t{8192}, size_t{8193}, stage / 4 - 1, stage / 4, stage / 4 + 1,
        stage / 2, 3 * stage / 4 + 5, size_t{1'700'001}}) {
    checkReductions<float>(group, stream, NumberType::float32, count,
                           {Reduction::sum, Reduction::average});
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
  onGoodProcesses(2, [](Collectives& group, orStream_t stream) {
    checkAllTypes(group, stream);
    checkSizes(group, stream);
  });
}

void checkBriefly(Collectives& group, orStream_t stream) {
  for (int turn = 0; turn < 3; ++turn) {
    for (size_t count : {0, 3, 20'001, 400'001}) {
      checkReductions<float>(group, stream, NumberType::float32, count,
                             {Reduction::sum});
      checkMoves(group, stream, count);
      checkTransfers(group, stream, 4 * count);
    }
  }
}

TEST(Collectives, of_eight_ranks_agree_with_the_host) {
  onThreads(8, checkBriefly);
}

TEST(Collectives, survive_the_overflow_of_their_counters) {
  for (uint32_t first : {0xffffffe8u, 0x7fffffe8u}) {
    onThreads(2, checkBriefly, first);
    onThreads(3, checkBriefly, first);
  }
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
  onThreads(2, [](Collectives& group, orStream_t stream) {
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
                      NumberType::int32, Reduction::sum);
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
      const auto one = openreg::makeCommunicator(rank, 2, 0, first.exchange());
      const auto two = openreg::makeCommunicator(rank, 2, 0, second.exchange());
      (rank ? one : two)->barrier(streams[rank ? 0 : 1].handle);
      (rank ? two : one)->barrier(streams[rank ? 1 : 0].handle);
      for (const auto& stream : streams) ok(orStreamSynchronize(stream.handle));
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST(Transfers,
     arrive_in_order_while_more_are_outstanding_than_an_inbox_holds) {
  onThreads(2, [](Collectives& group, orStream_t stream) {
    constexpr int kTransfers = 40;
    const int peer = 1 - group.rank();
    const Block sent(kTransfers * 1024), received(kTransfers * 1024);
    write(sent, valuesOf<uint8_t>(group.rank(), kTransfers * 1024), stream);
    ok(orStreamSynchronize(stream));
    for (int i = 0; i < kTransfers; ++i) {
      const Transfer receive{
          false, peer, static_cast<char*>(received.data) + i * 1024, 1024};
      group.transfer(group.transferStream(false, peer), {&receive, 1});
    }
    for (int i = 0; i < kTransfers; ++i) {
      const Transfer send{true, peer, static_cast<char*>(sent.data) + i * 1024,
                          1024};
      group.transfer(group.transferStream(true, peer), {&send, 1});
    }
    // A group that is destroyed drops its sends.
    ok(orStreamSynchronize(group.transferStream(true, peer)));
    EXPECT_EQ(read<uint8_t>(received, kTransfers * 1024,
                            group.transferStream(false, peer)),
              valuesOf<uint8_t>(peer, kTransfers * 1024));
  });
}

TEST(Transfers, of_one_call_may_be_many_of_different_sizes) {
  onThreads(3, [](Collectives& group, orStream_t stream) {
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
