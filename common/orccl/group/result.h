// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/orccl/interface/orccl.h"

#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

namespace openreg::orccl {

// [common.orccl.result] Inside the library a failure is an exception; the functions of the interface turn it into a code.
/// What a call returns, and its sentence.
struct Failure : std::runtime_error {
  Failure(orcclResult_t result, const std::string& sentence)
      : std::runtime_error(sentence), result(result) {}
  orcclResult_t result;
};

/// @throws Failure with the parts as its sentence, unless `condition` holds.
template <class... Parts>
void require(bool condition, orcclResult_t result, const Parts&... parts) {
  if (condition) return;
  std::ostringstream sentence;
  sentence.exceptions(std::ios::badbit);  // Otherwise half of it may be left.
  (sentence << ... << parts);
  throw Failure(result, sentence.str());
}

/// @throws Failure with the driver's sentence if its call has failed.
void check(orError_t error);

/// Remembers the sentence for this thread, and returns `result`.
orcclResult_t fail(orcclResult_t result, const char* sentence) noexcept;
inline constexpr char kNoMemory[] =
    "The host has no memory left for the library's own use.";

// [common.orccl.result.guarded] No exception leaves the library.
/// Calls `body()`, which is what a function of the interface does.
template <class Body>
orcclResult_t guarded(Body body) noexcept {
  try {
    body();
    return orcclSuccess;
  } catch (const Failure& failure) {
    return fail(failure.result, failure.what());
  } catch (const std::bad_alloc&) {
    return fail(orcclSystemError, kNoMemory);
  } catch (const std::exception& error) {
    return fail(orcclSystemError, error.what());
  }
}

// [-]
}  // namespace openreg::orccl
