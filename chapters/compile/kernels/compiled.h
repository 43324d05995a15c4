// SPDX-License-Identifier: BSD-3-Clause
// What the kernels that Inductor generates include.
#pragma once

#include "torch_openreg/common/math/launch/accesses.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>

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

// [-]
}  // namespace openreg
