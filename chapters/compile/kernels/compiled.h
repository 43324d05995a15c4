// SPDX-License-Identifier: BSD-3-Clause
// What the kernels that Inductor generates include.
#pragma once

#include "torch_openreg/common/math/launch/accesses.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>
#include <torch/csrc/inductor/cpp_prefix.h>

#include <array>
#include <cstdint>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

namespace openreg {

// [compile.kernels.launch] A compiled kernel is launched like any other, and an error in it refuses its result.
/// Enqueues `loops()`, which reaches memory through `pointers`, writes through
/// those that are not constant, and refuses its arguments with an exception.
/// `name` must outlive the launch; errors quote it.
template <class Loops, class... Pointers>
orError_t launchCompiled(uintptr_t stream, const char* name, Loops loops,
                         Pointers*... pointers) {
  WithoutGil others_run;  // A full queue makes the host wait.
  beginAccesses();
  (announceBlock(pointers,
                 std::is_const_v<Pointers> ? Access::read : Access::write),
   ...);
  return launch(reinterpret_cast<orStream_t>(stream), name,
                [loops = std::move(loops)] {
                  try {
                    loops();
                  } catch (const c10::Error& error) {
                    throw Refusal(error.what_without_backtrace());
                  } catch (const std::exception& error) {
                    throw Refusal(error.what());
                  }
                });
}

// [compile.kernels.division] Loops that divide integers report a zero through one variable for the whole process.
/// Kernels that divide integers hold it while they run.
inline std::mutex integer_division;

// [compile.kernels.division.quotient] The processor traps a division by zero, and one whose quotient is too large.
/// `a / b` of integers. A zero is noted as in PyTorch's other divisions; the
/// smallest number by -1 is itself, as it is on the device in eager mode.
template <class T, class U>
std::common_type_t<T, U> quotient(T a, U b) {
  using Number = std::common_type_t<T, U>;
  if (b == 0) {
    inductor_cpu_note_integer_div_by_zero();
    return 0;
  }
  if (std::is_signed_v<Number> && b == U(-1)) {
    return static_cast<Number>(0 -
                               static_cast<std::make_unsigned_t<Number>>(a));
  }
  return static_cast<Number>(a) / static_cast<Number>(b);
}

#if INDUCTOR_USE_VECTOR_TYPES()
/// The same of each pair of numbers.
template <class T>
at::vec::Vectorized<T> quotient(const at::vec::Vectorized<T>& a,
                                const at::vec::Vectorized<T>& b) {
  std::array<T, at::vec::Vectorized<T>::size()> from, by;
  a.store(from.data());
  b.store(by.data());
  for (size_t i = 0; i < from.size(); ++i) from[i] = quotient(from[i], by[i]);
  return at::vec::Vectorized<T>::loadu(from.data());
}

template <class T, int N>
at::vec::VectorizedN<T, N> quotient(const at::vec::VectorizedN<T, N>& a,
                                    const at::vec::VectorizedN<T, N>& b) {
  at::vec::VectorizedN<T, N> quotients;
  for (int i = 0; i < N; ++i) quotients[i] = quotient(a[i], b[i]);
  return quotients;
}
#endif

// [-]
}  // namespace openreg
