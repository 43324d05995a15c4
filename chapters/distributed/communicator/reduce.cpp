// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/reduce.h"

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <array>
#include <type_traits>
#include <utility>

namespace openreg {

// [distributed.reduce.names] A table gives each type its size and the name that messages use.
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

// [distributed.reduce.defined] Floating point has no bits to combine, and a boolean no average.
size_t sizeOf(NumberType type) {
  return kTypes.at(static_cast<size_t>(type)).size;
}
const char* nameOf(NumberType type) {
  return kTypes.at(static_cast<size_t>(type)).name;
}
const char* nameOf(Reduction reduction) {
  return kReductions.at(static_cast<size_t>(reduction));
}

bool isDefined(Reduction reduction, NumberType type) {
  if (type == NumberType::bytes || type > NumberType::boolean) return false;
  switch (type) {
    case NumberType::boolean:
      return reduction != Reduction::average;
    case NumberType::float32:
    case NumberType::float64:
    case NumberType::float16:
    case NumberType::bfloat16:
      return reduction < Reduction::bit_and;
    default:
      return true;
  }
}

namespace {

// [distributed.reduce.wide] Sums are built in a type that is at least 32 bits wide and that may overflow.
template <class T>
struct Wide {
  using Value = T;  // compared
  using Sum = T;    // added and multiplied
};
template <>
struct Wide<c10::Half> {
  using Value = float;
  using Sum = float;
};
template <>
struct Wide<c10::BFloat16> {
  using Value = float;
  using Sum = float;
};
template <class T>
requires std::is_integral_v<T>
struct Wide<T> {
  using Value = T;
  using Sum = std::make_unsigned_t<decltype(T{} + 0)>;
};

// [distributed.reduce.fold] Blocks of constant size stay in the first cache, and the compiler vectorizes their loops.
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

// [distributed.reduce.arithmetic] A minimum or maximum with a NaN is a NaN, as in PyTorch.
template <class T>
void reduceArithmetic(T* output, std::span<const void* const> inputs,
                      size_t count, Reduction reduction) {
  using Value = typename Wide<T>::Value;
  using Sum = typename Wide<T>::Sum;
  const auto convert = [](auto total) { return static_cast<T>(total); };
  const auto add = [](Sum a, Sum b) { return a + b; };
  switch (reduction) {
    case Reduction::sum:
      return fold<Sum>(output, inputs, count, add, convert);
    case Reduction::product:
      return fold<Sum>(
          output, inputs, count, [](Sum a, Sum b) { return a * b; }, convert);
    case Reduction::minimum:
      return fold<Value>(
          output, inputs, count,
          [](Value a, Value b) { return a != a || a < b ? a : b; }, convert);
    case Reduction::maximum:
      return fold<Value>(
          output, inputs, count,
          [](Value a, Value b) { return a != a || a > b ? a : b; }, convert);
    default:
      break;
  }
  // Negative sums must be divided as signed numbers.
  using Quotient =
      std::conditional_t<std::is_integral_v<T>, decltype(T{} + T{}), Sum>;
  const auto ranks = static_cast<Quotient>(inputs.size());
  fold<Sum>(output, inputs, count, add, [ranks](Sum total) {
    return static_cast<T>(static_cast<Quotient>(total) / ranks);
  });
}

// [distributed.reduce.bits] Bits are combined as unsigned bytes or words, whatever they mean.
template <class T>
void reduceBits(T* output, std::span<const void* const> inputs, size_t count,
                Reduction reduction) {
  const auto keep = [](T total) { return total; };
  switch (reduction) {
    case Reduction::bit_and:
      return fold<T>(
          output, inputs, count, [](T a, T b) { return static_cast<T>(a & b); },
          keep);
    case Reduction::bit_or:
      return fold<T>(
          output, inputs, count, [](T a, T b) { return static_cast<T>(a | b); },
          keep);
    default:
      return fold<T>(
          output, inputs, count, [](T a, T b) { return static_cast<T>(a ^ b); },
          keep);
  }
}

// [distributed.reduce.type] A boolean is a byte that is 0 or 1, so its reductions are bitwise ones.
template <class T>
void reduceAs(void* output, std::span<const void* const> inputs, size_t count,
              Reduction reduction) {
  if constexpr (std::is_integral_v<T>) {
    if (reduction >= Reduction::bit_and) {
      using Bits = std::make_unsigned_t<T>;
      return reduceBits(static_cast<Bits*>(output), inputs, count, reduction);
    }
  }
  reduceArithmetic(static_cast<T*>(output), inputs, count, reduction);
}

/// The reduction of the bytes 0 and 1 that is the same as that of the booleans.
Reduction bitsFor(Reduction reduction) {
  const bool any =
      reduction == Reduction::sum || reduction == Reduction::maximum;
  const bool all =
      reduction == Reduction::product || reduction == Reduction::minimum;
  return any ? Reduction::bit_or : all ? Reduction::bit_and : reduction;
}

// [-]
}  // namespace

// [distributed.reduce.types] One switch chooses the type.
void reduceNumbers(void* output, std::span<const void* const> inputs,
                   size_t count, NumberType type, Reduction reduction) {
  const auto as = [&]<class T>(std::type_identity<T>) {
    reduceAs<T>(output, inputs, count, reduction);
  };
  switch (type) {
    case NumberType::float32:
      return as(std::type_identity<float>{});
    case NumberType::float64:
      return as(std::type_identity<double>{});
    case NumberType::float16:
      return as(std::type_identity<c10::Half>{});
    case NumberType::bfloat16:
      return as(std::type_identity<c10::BFloat16>{});
    case NumberType::int8:
      return as(std::type_identity<int8_t>{});
    case NumberType::int16:
      return as(std::type_identity<int16_t>{});
    case NumberType::int32:
      return as(std::type_identity<int32_t>{});
    case NumberType::int64:
      return as(std::type_identity<int64_t>{});
    case NumberType::uint8:
      return as(std::type_identity<uint8_t>{});
    case NumberType::uint16:
      return as(std::type_identity<uint16_t>{});
    case NumberType::uint32:
      return as(std::type_identity<uint32_t>{});
    case NumberType::uint64:
      return as(std::type_identity<uint64_t>{});
    case NumberType::boolean:
      reduction = bitsFor(reduction);
      return as(std::type_identity<uint8_t>{});
    default:  // Has no reduction.
      break;
  }
}

// [-]
}  // namespace openreg
