// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/guards/faults.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>

namespace openreg::hardware {
namespace {

// [common.guards.faults.state] A signal handler must not wait for a lock, so it reads a fixed table of atomic numbers.
/// What a thread of a device runs.
struct Watched {
  std::atomic<pid_t> thread{0};
  std::array<char, 16> name{};
  std::atomic<bool> is_running{false};
  std::atomic<int> faults{0};
  uintptr_t address = 0;
  bool is_write = false;
  std::array<std::atomic<uintptr_t>, 32> opened{};
};

/// All threads of 16 devices with 64 threads each, and that of the seed.
std::array<Watched, 16 * 64 + 1> watched;
std::atomic<size_t> watched_count{0};
Range watched_addresses;

// [common.guards.faults.whose] OpenMP's threads run parts of a kernel, and have the name of the thread that started them.
Watched* runningHere() {
  const auto end = watched.begin() + static_cast<ptrdiff_t>(std::min(
                                         watched_count.load(), watched.size()));
  const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  std::array<char, 16> name{};
  prctl(PR_GET_NAME, name.data());
  Watched* named = nullptr;
  Watched* any = nullptr;
  for (auto each = watched.begin(); each != end; ++each) {
    if (!each->is_running) continue;
    if (each->thread == thread) return each;
    if (each->name == name) named = each;
    any = each;
  }
  return named ? named : any;
}

// [common.guards.faults.open] Each further fault opens twice as many pages, because a kernel may run through all memory.
bool openPages(Watched& command, uintptr_t address, bool is_write) {
  const int number = command.faults.fetch_add(1);
  if (number == 0) {
    command.address = address;
    command.is_write = is_write;
  }
  const size_t last = command.opened.size() - 1;
  const uintptr_t page = address & ~(pageSize() - 1);
  const size_t shift = std::min<size_t>(number, last);
  if (shift < last) command.opened[shift] = page;
  const uintptr_t begin = shift < last ? page : watched_addresses.begin;
  const size_t size =
      shift < last ? pageSize() << shift : watched_addresses.size();
  return mprotect(reinterpret_cast<void*>(begin),
                  std::min<size_t>(size, watched_addresses.end - begin),
                  PROT_READ | PROT_WRITE) == 0;
}

bool isWrite([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context);
  return registers->uc_mcontext.gregs[REG_ERR] & 2;
#else
  return true;
#endif
}

// [common.guards.faults.pass] A fault that no command made goes to the handler that was there before, and a second one to the system.
struct sigaction previous;
std::atomic<bool> has_passed{false};

void passOn(const siginfo_t* info) {
  struct sigaction next = previous;
  if (has_passed.exchange(true)) {
    next = {};
    next.sa_handler = SIG_DFL;
  }
  sigaction(SIGSEGV, &next, nullptr);
  // The instruction that faulted is repeated; a signal that was sent is not.
  if (info->si_code <= 0) raise(SIGSEGV);
}

void onFault(int, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Watched* command = nullptr;
  if (info->si_code > 0 && watched_addresses.contains(address))
    command = runningHere();
  if (!command || !openPages(*command, address, isWrite(context))) passOn(info);
  errno = error;
}

// [common.guards.faults.install] A program may replace the handler while it runs, so each command looks for it.
void installHandler() {
  static std::mutex& mutex = *new std::mutex;
  struct sigaction now;
  sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_sigaction == &onFault || has_passed) return;
  std::lock_guard lock(mutex);
  sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_sigaction == &onFault) return;
  previous = now;
  struct sigaction ours = {};
  ours.sa_sigaction = &onFault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, nullptr);
}

Watched& watchedHere() {
  static thread_local Watched& here = []() -> Watched& {
    const size_t number = watched_count.fetch_add(1);
    if (number >= watched.size())
      throw std::runtime_error("There are more threads than devices have.");
    Watched& mine = watched[number];
    pthread_getname_np(pthread_self(), mine.name.data(), mine.name.size());
    mine.thread = static_cast<pid_t>(syscall(SYS_gettid));
    return mine;
  }();
  return here;
}

// [-]
}  // namespace

// [common.guards.faults.command] The kernel has joined its threads when it returns, so what they noted is complete.
void watchFaults(Range addresses) {
  watched_addresses = addresses;
  static_cast<void>(pageSize());  // Known before a handler asks for it.
}

void beginCommand() {
  Watched& here = watchedHere();
  installHandler();
  here.faults = 0;
  here.is_running = true;
}

std::optional<PageFault> endCommand() {
  Watched& here = watchedHere();
  here.is_running = false;
  const auto count = static_cast<size_t>(here.faults.load());
  if (count == 0) return std::nullopt;
  PageFault fault{here.address, here.is_write, {}};
  const size_t last = here.opened.size() - 1;
  for (size_t i = 0; i < std::min(count, last); ++i) {
    const uintptr_t begin = here.opened[i];
    fault.opened.push_back(
        {begin, begin + std::min<size_t>(pageSize() << i,
                                         watched_addresses.end - begin)});
  }
  if (count > last) fault.opened = {watched_addresses};
  return fault;
}

// [-]
}  // namespace openreg::hardware
