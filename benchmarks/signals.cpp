// SPDX-License-Identifier: BSD-3-Clause
// How long a number takes from a stream to a stream of another process.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

#include <cstdlib>
#include <thread>

namespace {

constexpr uint32_t kTurns = 500;

// Two numbers, and when the last turn began and ended.
struct Shared {
  uint32_t question, answer;
  double asked, seen;
};

void check(orError_t error) {
  if (!error) return;
  std::fprintf(stderr, "%s\n", orGetErrorDetail());
  std::exit(1);
}

void answer(int pipe) {
  orIpcMemHandle_t handle;
  if (read(pipe, &handle, sizeof(handle)) != sizeof(handle)) std::exit(1);
  void* memory;
  check(orIpcOpenMemHandle(&memory, handle));
  auto* shared = static_cast<Shared*>(memory);
  for (uint32_t turn = 1; turn <= 2 * kTurns; ++turn) {
    check(orStreamWaitValue32(nullptr, &shared->question, turn));
    check(openreg::launch(nullptr, "note", [at = openreg::onDevice(shared)] {
      at->seen = now();
    }));
    check(orStreamWriteValue32(nullptr, &shared->answer, turn));
  }
  check(orIpcCloseMemHandle(shared));
}

void ask(Shared* shared, uint32_t first, int pause_us, const char* what) {
  std::vector<double> us;
  auto* at = openreg::onDevice(shared);
  for (uint32_t turn = first; turn < first + kTurns; ++turn) {
    check(openreg::launch(nullptr, "ask", [=] {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      at->asked = now();
      orSignalValue32(&at->question, turn);
    }));
    check(orStreamWaitValue32(nullptr, &shared->answer, turn));
    check(openreg::launch(nullptr, "note",
                          [=, &us] { us.push_back(at->seen - at->asked); }));
  }
  check(orDeviceSynchronize());
  size_t turn = 0;
  compare("signals", what, kTurns - 1,
          {{"openreg", [&] { return us[turn++]; }}});
}

}  // namespace

int main() {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    answer(ends[0]);
    return 0;
  }
  void* memory;
  check(orMalloc(&memory, sizeof(Shared)));
  check(orMemset(memory, 0, sizeof(Shared)));
  orIpcMemHandle_t handle;
  check(orIpcGetMemHandle(&handle, memory));
  if (write(ends[1], &handle, sizeof(handle)) != sizeof(handle)) return 1;
  auto* shared = static_cast<Shared*>(memory);
  ask(shared, 1, 0, "signal another process, which looks");
  ask(shared, 1 + kTurns, 2000, "signal another process, which is asleep");
  int status = 1;
  waitpid(child, &status, 0);
  return status;
}
