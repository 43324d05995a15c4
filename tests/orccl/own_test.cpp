// SPDX-License-Identifier: BSD-3-Clause
// What holds for this library, and not for every one with its interface.
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/orccl/collectives/half.h"
#include "torch_openreg/common/orccl/group/mailbox.h"
#include "torch_openreg/tests/orccl/ranks.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace {

using openreg::orccl::Bfloat16;
using openreg::orccl::Half;

/// The value of a number in IEEE 754's format, by its definition.
double valueOf(uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction ? std::nan("") : std::numeric_limits<double>::infinity();
  }
  return exponent ? std::ldexp((1 << fraction_bits) + fraction,
                               exponent - bias - fraction_bits)
                  : std::ldexp(fraction, 1 - bias - fraction_bits);
}

/// Every number is exact as a float, and what lies between two of them is
/// rounded to the nearer one, or to the even one.
template <class T>
void checkRounding(int fraction_bits) {
  for (uint32_t bits = 0; bits < 0x8000; ++bits) {
    T number;
    number.bits = static_cast<uint16_t>(bits);
    const double value = valueOf(number.bits, fraction_bits);
    const auto as_float = static_cast<float>(number);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(as_float)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(T(as_float)))) << bits;
      continue;
    }
    ASSERT_EQ(as_float, value) << bits;
    ASSERT_EQ(T(as_float).bits, bits);
    ASSERT_EQ(T(-as_float).bits, bits | 0x8000);
    if (std::isinf(value)) continue;
    // The largest number's successor would be a power of two.
    const double next = valueOf(number.bits + 1, fraction_bits);
    const double above =
        std::isinf(next) ? 2 * value - valueOf(bits - 1, fraction_bits) : next;
    const auto middle = static_cast<float>((value + above) / 2);
    ASSERT_EQ(T(middle).bits, bits + bits % 2) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
  }
}

TEST(Half, is_exact_as_a_float_and_rounds_to_the_nearest) {
  checkRounding<Half>(10);
  EXPECT_EQ(Half(1e30f).bits, 0x7c00);
}

TEST(Bfloat16, is_exact_as_a_float_and_rounds_to_the_nearest) {
  checkRounding<Bfloat16>(7);
}

TEST(Calls, that_another_process_has_invented_have_a_name) {
  const orcclCall_t call{orcclFuncAllReduce, orcclFloat32, orcclSum, 0, 8, 1};
  orcclCall_t wrong;
  std::memset(&wrong, 0xEE, sizeof(wrong));
  const auto compared = [&] {
    EXPECT_EQ(orcclCompareCalls(std::array{call, wrong}.data(),
                                std::array{0, 1}.data(), 2),
              orcclInvalidUsage);
    return std::string(orcclGetLastError());
  };
  std::string said = compared();
  EXPECT_EQ(
      said.rfind("rank 0 calls all_reduce of 8 bytes of float32 with sum, "
                 "rank 1 calls an unknown call of ",
                 0),
      0u)
      << said;
  EXPECT_NE(said.find(" bytes of an unknown type"), said.npos) << said;
  wrong.func = orcclFuncAllReduce;
  said = compared();
  EXPECT_NE(said.find(" of an unknown type with an unknown reduction"),
            said.npos)
      << said;
}

TEST(Refusal, of_a_type_or_a_reduction_that_there_is_not_gives_its_number) {
  Table table;
  const auto group = makeGroup(0, 1, table.exchange());
  char byte = 0;
  const auto type = static_cast<orcclDataType_t>(21);
  EXPECT_EQ(orcclTypeSize(type), 0u);
  EXPECT_EQ(orcclSend(&byte, 1, type, 0, group->comm, nullptr),
            orcclInvalidArgument);
  EXPECT_EQ(orcclBroadcast(&byte, 1, type, 0, group->comm, nullptr),
            orcclInvalidArgument);
  EXPECT_STREQ(orcclGetLastError(), "There is no type with the number 21.");
  const auto reduction = static_cast<orcclRedOp_t>(8);
  EXPECT_EQ(orcclCheckReduction(orcclInt32, reduction), orcclInvalidArgument);
  EXPECT_STREQ(orcclGetLastError(), "There is no reduction with the number 8.");
}

TEST(Refusal, of_a_device_without_room_has_the_drivers_sentence) {
  using namespace openreg::orccl;
  Table table;
  ok(orInject("alloc:1"));
  try {
    makeGroup(0, 2, table.exchange());
    FAIL();
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.code, orcclUnhandledDriverError);
    EXPECT_EQ(orPeekAtLastError(), orErrorMemoryAllocation);
    EXPECT_EQ(
        refused.what(),
        "An allocation of " +
            std::to_string(kHeaderBytes +
                           kStages * (kStageBytes + 2 * kPairStageBytes)) +
            " bytes was made to fail, by order.");
  }
}

}  // namespace
