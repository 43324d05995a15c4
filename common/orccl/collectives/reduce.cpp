// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/orccl/collectives/reduce.h"

#include "torch_openreg/common/orccl/collectives/half.h"
#include "torch_openreg/common/orccl/group/result.h"

#include <array>
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
const char* nameOf(orcclDataType_t type) { return kTypes.at(type).name; }
const char* nameOf(orcclRedOp_t op) { return kReductions.at(op); }

void checkReduction(orcclDataType_t type, orcclRedOp_t op) {
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
  using Value = T;  // compared
  using Sum = T;    // added and multiplied
  using Quotient = T;
};
template <>
struct Wide<Half> {
  using Value = float;
  using Sum = float;
  using Quotient = float;
};
template <>
struct Wide<Bfloat16> {
  using Value = float;
  using Sum = float;
  using Quotient = float;
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
  Sum total[kBlock];
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
void reduceArithmetic(T* output, std::span<const void* const> inputs,
                      size_t count, orcclRedOp_t op) {
  using Value = typename Wide<T>::Value;
  using Sum = typename Wide<T>::Sum;
  const auto convert = [](auto total) { return static_cast<T>(total); };
  const auto add = [](Sum a, Sum b) { return a + b; };
  switch (op) {
    case orcclSum:
      return fold<Sum>(output, inputs, count, add, convert);
    case orcclProd:
      return fold<Sum>(
          output, inputs, count, [](Sum a, Sum b) { return a * b; }, convert);
    case orcclMin:
      return fold<Value>(
          output, inputs, count,
          [](Value a, Value b) { return a != a || a < b ? a : b; }, convert);
    case orcclMax:
      return fold<Value>(
          output, inputs, count,
          [](Value a, Value b) { return a != a || a > b ? a : b; }, convert);
    default:
      break;
  }
  // Negative sums must be divided as signed numbers.
  using Quotient = typename Wide<T>::Quotient;
  const auto ranks = static_cast<Quotient>(inputs.size());
  fold<Sum>(output, inputs, count, add, [ranks](Sum total) {
    return static_cast<T>(static_cast<Quotient>(total) / ranks);
  });
}

// [common.orccl.reduce.bits] Bits are combined as unsigned bytes or words, whatever they mean.
template <class T>
void reduceBits(T* output, std::span<const void* const> inputs, size_t count,
                orcclRedOp_t op) {
  const auto keep = [](T total) { return total; };
  switch (op) {
    case orcclBand:
      return fold<T>(
          output, inputs, count, [](T a, T b) { return static_cast<T>(a & b); },
          keep);
    case orcclBor:
      return fold<T>(
          output, inputs, count, [](T a, T b) { return static_cast<T>(a | b); },
          keep);
    default:
      return fold<T>(
          output, inputs, count, [](T a, T b) { return static_cast<T>(a ^ b); },
          keep);
  }
}

// [common.orccl.reduce.type] A boolean is a byte that is 0 or 1, so its reductions are bitwise ones.
template <class T>
void reduceAs(void* output, std::span<const void* const> inputs, size_t count,
              orcclRedOp_t op) {
  if constexpr (std::is_integral_v<T>) {
    if (op >= orcclBand) {
      using Bits = std::make_unsigned_t<T>;
      return reduceBits(static_cast<Bits*>(output), inputs, count, op);
    }
  }
  reduceArithmetic(static_cast<T*>(output), inputs, count, op);
}

/// The reduction of the bytes 0 and 1 that is the same as that of the booleans.
orcclRedOp_t bitsFor(orcclRedOp_t op) {
  const bool any = op == orcclSum || op == orcclMax;
  const bool all = op == orcclProd || op == orcclMin;
  return any ? orcclBor : all ? orcclBand : op;
}

// [-]
}  // namespace

// [common.orccl.reduce.types] One switch chooses the type.
void reduceNumbers(void* output, std::span<const void* const> inputs,
                   size_t count, orcclDataType_t type, orcclRedOp_t op) {
  const auto as = [&]<class T>(std::type_identity<T>) {
    reduceAs<T>(output, inputs, count, op);
  };
  switch (type) {
    case orcclFloat32:
      return as(std::type_identity<float>{});
    case orcclFloat64:
      return as(std::type_identity<double>{});
    case orcclFloat16:
      return as(std::type_identity<Half>{});
    case orcclBfloat16:
      return as(std::type_identity<Bfloat16>{});
    case orcclInt8:
      return as(std::type_identity<int8_t>{});
    case orcclInt16:
      return as(std::type_identity<int16_t>{});
    case orcclInt32:
      return as(std::type_identity<int32_t>{});
    case orcclInt64:
      return as(std::type_identity<int64_t>{});
    case orcclUint8:
      return as(std::type_identity<uint8_t>{});
    case orcclUint16:
      return as(std::type_identity<uint16_t>{});
    case orcclUint32:
      return as(std::type_identity<uint32_t>{});
    case orcclUint64:
      return as(std::type_identity<uint64_t>{});
    case orcclBool:
      op = bitsFor(op);
      return as(std::type_identity<uint8_t>{});
    default:  // Has no reduction.
      break;
  }
}

// [-]
}  // namespace openreg::orccl

// [common.orccl.reduce.size] The size of a type does not depend on a communicator.
size_t orcclTypeSize(orcclDataType_t type) noexcept {
  return openreg::orccl::kTypes.at(type).size;
}

// [-]
