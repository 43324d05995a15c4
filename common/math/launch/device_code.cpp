// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/device_code.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>

#include <exception>
#include <memory>
#include <vector>

namespace openreg {

// [common.device-code.thread] Device threads record no gradients and print no warnings.
void prepareThread() {
  thread_local c10::InferenceMode mode;
  thread_local SilentWarningHandler silent;
  thread_local c10::WarningUtils::WarningHandlerGuard guard(&silent);
  // Else PyTorch does it in the middle of a thread's first parallel loop.
  at::internal::lazy_init_num_threads();
}

namespace {

// [common.device-code.team] The loops of a small kernel stay on its thread: to wake others takes longer than the loops.
/// How many threads the loops of the kernel use that this thread runs. OpenMP
/// keeps the number for each thread. A kernel begins alone, and the others join
/// when its tensors have as many elements as one thread gets in PyTorch's
/// loops.
class Team {
 public:
  explicit Team(bool stays_alone) : stays_alone_(stays_alone) {
    omp_set_num_threads(1);
    current = this;
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    omp_set_num_threads(threads_);
    current = nullptr;
  }

  void add(int64_t elements) {
    elements_ += elements;
    if (!stays_alone_ && elements_ > at::internal::GRAIN_SIZE)
      omp_set_num_threads(threads_);
  }

  static inline thread_local Team* current = nullptr;

 private:
  const int threads_ = omp_get_max_threads();
  const bool stays_alone_;
  int64_t elements_ = 0;
};

}  // namespace

void countElements(int64_t count) {
  if (Team::current) Team::current->add(count);
}

// [common.device-code.run-kernel] A kernel launched in deterministic mode stays deterministic after the mode is switched off: its loops are not parallel.
void runKernel(const Modes& modes, const std::function<void()>& body) {
  prepareThread();
  Team team(modes.deterministic && !Modes().deterministic);
  try {
    body();
  } catch (const c10::Error& error) {
    throw Refusal(error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw Refusal(error.what());
  }
}

// [common.device-code.wait] The host and the kernel share what is told, because the wait may end early.
struct Told final : c10::WarningHandler {
  std::exception_ptr error;
  std::vector<c10::Warning> warnings;

  void process(const c10::Warning& warning) override {
    warnings.push_back(warning);
  }
};

void runAndWait(const char* name, orStream_t stream,
                std::function<void()> body) {
  auto told = std::make_shared<Told>();
  check(launch(stream, name, [told, body = std::move(body)] {
    prepareThread();
    const Team team(/*stays_alone=*/false);
    const c10::WarningUtils::WarningHandlerGuard is_told(told.get());
    try {
      body();
    } catch (...) {
      told->error = std::current_exception();
    }
  }));
  check(waitInterruptibly([&] { return orStreamSynchronize(stream); }));
  for (const c10::Warning& each : told->warnings) c10::warn(each);
  if (told->error) std::rethrow_exception(told->error);
}

// [-]
}  // namespace openreg
