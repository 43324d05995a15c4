// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/reduce.h"

#include "torch_openreg/common/orccl/collectives/half.h"
#include "torch_openreg/common/orccl/group/mailbox.h"
#include "torch_openreg/common/orccl/group/result.h"

#include <array>
#include <functional>
#include <type_traits>
#include <utility>

namespace openreg::orccl {

// [common.orccl.reduce.names] A table gives each type its size and the name that messages use.
namespace {

struct TypeFacts {
  const char* name;
  size_t size;
};

constexpr auto kTypes = std::to_array<TypeFacts>({
    {"bytes", 1},           {"float32", 4},         {"float64", 8},
    {"float16", 2},         {"bfloat16", 2},        {"int8", 1},
    {"int16", 2},           {"int32", 4},           {"int64", 8},
    {"uint8", 1},           {"uint16", 2},          {"uint32", 4},
    {"uint64", 8},          {"boolean", 1},         {"complex64", 8},
    {"complex128", 16},     {"float8_e5m2", 1},     {"float8_e4m3fn", 1},
    {"float8_e5m2fnuz", 1}, {"float8_e4m3fnuz", 1}, {"float8_e8m0fnu", 1},
});

constexpr auto kReductions = std::to_array<const char*>(
    {"sum", "average", "product", "minimum", "maximum", "bitwise and",
     "bitwise or", "bitwise xor"});

// [-]
}  // namespace

// [common.orccl.reduce.defined] Floating point has no bits to combine, and a boolean no average.
const char* nameOf(orcclDataType_t type) {
  const auto number = static_cast<size_t>(type);
  return number < kTypes.size() ? kTypes[number].name : "an unknown type";
}
const char* nameOf(orcclRedOp_t op) {
  const auto number = static_cast<size_t>(op);
  return number < kReductions.size() ? kReductions[number]
                                     : "an unknown reduction";
}

void checkReduction(orcclDataType_t type, orcclRedOp_t op) {
  require(static_cast<size_t>(op) < kReductions.size(), orcclInvalidArgument,
          "There is no reduction with the number ", static_cast<int>(op), ".");
  const bool is_number = type != orcclBytes && type <= orcclBool;
  const bool is_floating = type <= orcclBfloat16;
  require(is_number && !(is_floating && op >= orcclBand) &&
              !(type == orcclBool && op == orcclAvg),
          orcclInvalidArgument, "Numbers of type ", nameOf(type), " have no ",
          nameOf(op), ".");
}

namespace {

// [common.orccl.reduce.wide] Sums are built in a type that is at least 32 bits wide and that may overflow.
template <class T>
struct Wide {
  using Value =  // compared
      std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  using Sum = Value;  // added and multiplied
  using Quotient = Value;
};
template <class T>
requires std::is_integral_v<T>
struct Wide<T> {
  using Value = T;
  using Sum = std::make_unsigned_t<decltype(T{} + 0)>;
  using Quotient = decltype(T{} + 0);
};

// [common.orccl.reduce.fold] Blocks of constant size stay in the first cache, and the compiler vectorizes their loops.
template <class Sum, class T, class Combine, class Finish>
void fold(T* output, std::span<const void* const> inputs, size_t count,
          Combine combine, Finish finish) {
  constexpr size_t kBlock = 512;
  // Elsewhere in its page, a load of an input waits for stores to the sums.
  alignas(4096) Sum total[kBlock];
  const auto reduceBlock = [&](size_t begin, auto size) {
    const T* first = static_cast<const T*>(inputs[0]) + begin;
    for (size_t i = 0; i < size; ++i) total[i] = static_cast<Sum>(first[i]);
    for (const void* input : inputs.subspan(1)) {
      const T* next = static_cast<const T*>(input) + begin;
      for (size_t i = 0; i < size; ++i) {
        total[i] = combine(total[i], static_cast<Sum>(next[i]));
      }
    }
    for (size_t i = 0; i < size; ++i) output[begin + i] = finish(total[i]);
  };
  size_t begin = 0;
  for (; begin + kBlock <= count; begin += kBlock) {
    reduceBlock(begin, std::integral_constant<size_t, kBlock>{});
  }
  reduceBlock(begin, count - begin);
}

// [common.orccl.reduce.arithmetic] A minimum or maximum with a NaN is a NaN, as in PyTorch.
template <class T>
void reduceAs(void* output, std::span<const void* const> inputs, size_t count,
              orcclRedOp_t op) {
  using Value = typename Wide<T>::Value;
  using Sum = typename Wide<T>::Sum;
  using Quotient = typename Wide<T>::Quotient;
  const auto run = [&]<class A>(std::type_identity<A>, auto combine) {
    fold<A>(static_cast<T*>(output), inputs, count, combine,
            [](A total) { return static_cast<T>(total); });
  };
  constexpr std::type_identity<Sum> sum;
  constexpr std::type_identity<Value> value;
  const auto less = [](Value a, Value b) { return a != a || a < b ? a : b; };
  const auto more = [](Value a, Value b) { return a != a || a > b ? a : b; };
  if (op == orcclSum) return run(sum, std::plus<Sum>());
  if (op == orcclProd) return run(sum, std::multiplies<Sum>());
  if (op == orcclMin) return run(value, less);
  if (op == orcclMax) return run(value, more);
  if constexpr (std::is_integral_v<T>) {
    if (op == orcclBand) return run(value, std::bit_and<T>());
    if (op == orcclBor) return run(value, std::bit_or<T>());
    if (op == orcclBxor) return run(value, std::bit_xor<T>());
  }
  // Negative sums must be divided as signed numbers.
  const auto ranks = static_cast<Quotient>(inputs.size());
  fold<Sum>(static_cast<T*>(output), inputs, count, std::plus<Sum>(),
            [ranks](Sum total) {
              return static_cast<T>(static_cast<Quotient>(total) / ranks);
            });
}

// [common.orccl.reduce.types] A boolean is a byte that is 0 or 1, so its reductions are bitwise ones.
constexpr auto kReductionsOf = std::to_array<decltype(&reduceAs<float>)>({
    nullptr,
    &reduceAs<float>,
    &reduceAs<double>,
    &reduceAs<Half>,
    &reduceAs<Bfloat16>,
    &reduceAs<int8_t>,
    &reduceAs<int16_t>,
    &reduceAs<int32_t>,
    &reduceAs<int64_t>,
    &reduceAs<uint8_t>,
    &reduceAs<uint16_t>,
    &reduceAs<uint32_t>,
    &reduceAs<uint64_t>,
    &reduceAs<uint8_t>,
});

// [-]
}  // namespace

// [common.orccl.reduce.numbers] The arguments were checked before anything was enqueued.
size_t bytesOf(size_t count, orcclDataType_t type) {
  const size_t size = orcclTypeSize(type);
  require(size > 0, orcclInvalidArgument, "There is no type with the number ",
          static_cast<int>(type), ".");
  require(count <= SIZE_MAX / kMaxRanks / size, orcclInvalidArgument, count,
          " elements are more than memory has.");
  return count * size;
}

void reduceNumbers(void* output, std::span<const void* const> inputs,
                   size_t count, orcclDataType_t type, orcclRedOp_t op) {
  if (type == orcclBool && (op == orcclSum || op == orcclMax)) op = orcclBor;
  if (type == orcclBool && (op == orcclProd || op == orcclMin)) op = orcclBand;
  kReductionsOf.at(type)(output, inputs, count, op);
}

// [-]
}  // namespace openreg::orccl

// [common.orccl.reduce.size] The size of a type does not depend on a communicator.
size_t orcclTypeSize(orcclDataType_t type) noexcept {
  using openreg::orccl::kTypes;
  const auto number = static_cast<size_t>(type);
  return number < kTypes.size() ? kTypes[number].size : 0;
}

// [-]
