// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/device_code.h"

#include <c10/core/InferenceMode.h>
#include <omp.h>

#include <memory>
#include <optional>

namespace openreg {

// [common.device-code.thread] Device threads record no gradients and print no warnings.
void prepareThread() {
  thread_local c10::InferenceMode mode;
  thread_local SilentWarningHandler silent;
  thread_local c10::WarningUtils::WarningHandlerGuard guard(&silent);
}

// [common.device-code.run-kernel] A kernel launched in deterministic mode stays deterministic after the mode is switched off: its loops are not parallel.
namespace {

/// OpenMP keeps this number for each thread.
struct NoParallelLoops {
  int before = omp_get_max_threads();
  NoParallelLoops() { omp_set_num_threads(1); }
  NoParallelLoops(const NoParallelLoops&) = delete;
  ~NoParallelLoops() { omp_set_num_threads(before); }
};

}  // namespace

void runKernel(const Modes& modes, const std::function<void()>& body) {
  prepareThread();
  std::optional<NoParallelLoops> serial;
  if (modes.deterministic && !Modes().deterministic) serial.emplace();
  try {
    body();
  } catch (const c10::Error& error) {
    throw Refusal(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw Refusal(error.what());
  }
}

// [common.device-code.wait] The host and the kernel share ownership of the error, because the wait may end early.
void runAndWait(const char* name, orStream_t stream,
                std::function<void()> body) {
  auto error = std::make_shared<std::exception_ptr>();
  check(launch(stream, name, [error, body = std::move(body)] {
    prepareThread();
    try {
      body();
    } catch (...) {
      *error = std::current_exception();
    }
  }));
  check(waitInterruptibly([&] { return orStreamSynchronize(stream); }));
  if (*error) std::rethrow_exception(*error);
}

// [-]
}  // namespace openreg
