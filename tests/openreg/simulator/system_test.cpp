// SPDX-License-Identifier: BSD-3-Clause
// The system refuses a call of the driver: first the first one, then the second
// one, until the driver makes no more. The functions of the system that this
// program defines take precedence over those of the C library.
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/shorthands.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <vector>

// A sanitizer has functions of its own in their place.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace system_test {

/// Which function fails, and at which of its next calls; 0 for none.
std::string failing;
std::atomic<int> countdown{0};

bool fails(const char* function) {
  if (countdown == 0 || failing != function) return false;
  if (--countdown > 0) return false;
  errno = EPERM;
  return true;
}

template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace system_test

extern "C" {

void* mmap64(void* where, size_t size, int rights, int flags, int file,
             off64_t offset) noexcept {
  if (system_test::fails("mmap")) return MAP_FAILED;
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, where, size, rights, flags, file, offset));
}

int mprotect(void* where, size_t size, int rights) noexcept {
  if (system_test::fails("mprotect")) return -1;
  return static_cast<int>(syscall(SYS_mprotect, where, size, rights));
}

int memfd_create(const char* name, unsigned flags) noexcept {
  if (system_test::fails("memfd_create")) return -1;
  return static_cast<int>(syscall(SYS_memfd_create, name, flags));
}

int fchmod(int file, mode_t mode) noexcept {
  if (system_test::fails("fchmod")) return -1;
  return static_cast<int>(syscall(SYS_fchmod, file, mode));
}

int ftruncate64(int file, off64_t size) noexcept {
  if (system_test::fails("ftruncate")) return -1;
  return static_cast<int>(syscall(SYS_ftruncate, file, size));
}

int fcntl64(int file, int command, ...) {
  if (system_test::fails("fcntl")) return -1;
  va_list more;
  va_start(more, command);
  const long argument = va_arg(more, long);
  va_end(more);
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}

int fstat64(int file, struct stat64* about) noexcept {
  if (system_test::fails("fstat")) return -1;
  return static_cast<int>(syscall(SYS_fstat, file, about));
}

int getrlimit64(__rlimit_resource_t what, struct rlimit64* limit) noexcept {
  if (system_test::fails("getrlimit")) return -1;
  return static_cast<int>(
      syscall(SYS_prlimit64, 0, static_cast<int>(what), nullptr, limit));
}

int sched_getaffinity(pid_t thread, size_t size, cpu_set_t* cores) noexcept {
  static auto* next =
      system_test::original<int(pid_t, size_t, cpu_set_t*)>(__func__);
  return system_test::fails("sched_getaffinity") ? -1
                                                 : next(thread, size, cores);
}

long syscall(long number, ...) noexcept {
  static auto* next =
      system_test::original<long(long, long, long, long, long, long, long)>(
          __func__);
  va_list more;
  va_start(more, number);
  long all[6];
  for (long& each : all) each = va_arg(more, long);
  va_end(more);
  if (number == SYS_futex_waitv && system_test::fails("futex_waitv")) return -1;
  return next(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

}  // extern "C"

namespace system_test {

/// While it lives, call number `number` of `function` fails, and no other one.
struct Trial {
  Trial(const char* function, int number) {
    failing = function;
    countdown = number;
  }
  ~Trial() { countdown = 0; }
  bool hasFailed() const { return countdown == 0; }
};

/// How a process ends that made fewer calls.
constexpr int kNeedsNoMore = 99;

/// Runs a disabled test once for each call of `function`, in processes of their
/// own, until it needs no more calls; returns how many it needs.
int trials(const std::string& test, const std::string& function,
           const std::vector<std::string>& settings = {}) {
  for (int number = 1; number < 100; ++number) {
    std::vector<std::string> all = {"FAILS=" + function,
                                    "AT=" + std::to_string(number),
                                    "OPENREG_DEVICE_MEMORY=64M"};
    all.insert(all.end(), settings.begin(), settings.end());
    const int status = again("System.DISABLED_" + test, all);
    if (WEXITSTATUS(status) == kNeedsNoMore) return number - 1;
    EXPECT_EQ(status, 0) << function << " fails at its call " << number;
  }
  ADD_FAILURE() << "There is no end of calls of " << function << ".";
  return 0;
}

struct TrialAsTold : Trial {
  TrialAsTold() : Trial(std::getenv("FAILS"), std::atoi(std::getenv("AT"))) {}
};

void endIfNoneFailed(const Trial& trial) {
  if (!trial.hasFailed()) _exit(kNeedsNoMore);
}

// The machine starts without the call, or is refused in a sentence; then it
// starts.
TEST(System, DISABLED_start) {
  void* pointer = nullptr;
  {
    const TrialAsTold trial;
    const orError_t error = orMalloc(&pointer, 64);
    endIfNoneFailed(trial);
    if (error != orSuccess) {
      EXPECT_EQ(error, orErrorUnknown);
      EXPECT_EQ(detail().rfind("The devices did not start: ", 0), 0u)
          << detail();
    }
  }
  EXPECT_EQ(orMalloc(&pointer, 64), orSuccess) << detail();
  EXPECT_EQ(orMemset(pointer, 1, 64), orSuccess);
  EXPECT_EQ(orFree(pointer), orSuccess);
}

TEST(System, may_refuse_each_call_that_starts_the_machine) {
  EXPECT_GE(trials("start", "mmap"), 5);
  for (const char* function : {"memfd_create", "fchmod", "ftruncate", "fcntl"})
    EXPECT_EQ(trials("start", function), 1) << function;
  EXPECT_EQ(trials("start", "getrlimit"), 2);
}

TEST(System, DISABLED_pinned) {
  void* pointer = nullptr;
  ASSERT_EQ(orMalloc(&pointer, 64), orSuccess);
  {
    const TrialAsTold trial;
    const orError_t error = orMallocHost(&pointer, 64);
    endIfNoneFailed(trial);
    EXPECT_EQ(error, orErrorMemoryAllocation);
    EXPECT_EQ(detail(), "There is no room for 64 bytes of pinned host memory.");
  }
  EXPECT_EQ(orMallocHost(&pointer, 64), orSuccess);
}

TEST(System, may_refuse_pinned_memory) {
  EXPECT_EQ(trials("pinned", "mprotect"), 1);
}

TEST(System, DISABLED_handle) {
  char* block = allocate(64);
  orIpcMemHandle_t handle;
  EXPECT_EQ(orMemset(block, 7, 64), orSuccess);
  {
    void* opened = nullptr;
    const TrialAsTold trial;
    const orError_t error = orIpcGetMemHandle(&handle, block) != orSuccess
                                ? orPeekAtLastError()
                                : orIpcOpenMemHandle(&opened, handle);
    if (error == orSuccess) {
      EXPECT_EQ(orIpcCloseMemHandle(opened), orSuccess);
    }
    endIfNoneFailed(trial);
    if (error != orSuccess) {
      EXPECT_TRUE(detail().ends_with('.')) << detail();
    }
  }
  void* opened = nullptr;
  ASSERT_EQ(orIpcGetMemHandle(&handle, block), orSuccess);
  ASSERT_EQ(orIpcOpenMemHandle(&opened, handle), orSuccess) << detail();
  char byte = 0;
  EXPECT_EQ(orMemcpy(&byte, opened, 1, orMemcpyDeviceToHost), orSuccess);
  EXPECT_EQ(byte, 7);
  EXPECT_EQ(orIpcCloseMemHandle(opened), orSuccess);
}

TEST(System, may_refuse_each_call_that_opens_a_handle) {
  EXPECT_EQ(trials("handle", "mmap"), 4);
  EXPECT_EQ(trials("handle", "fstat"), 2);
}

TEST(System, DISABLED_copy) {
  constexpr size_t kBytes = 8 << 20;
  char* block = allocate(kBytes);
  std::vector<char> in(kBytes, 7), out(kBytes);
  {
    const TrialAsTold trial;
    EXPECT_EQ(orMemcpy(block, in.data(), kBytes, orMemcpyHostToDevice),
              orSuccess);
    endIfNoneFailed(trial);
  }
  EXPECT_EQ(orMemcpy(out.data(), block, kBytes, orMemcpyDeviceToHost),
            orSuccess);
  EXPECT_EQ(in, out);
}

TEST(System, need_not_say_on_how_many_cores_copies_may_run) {
  EXPECT_EQ(trials("copy", "sched_getaffinity"), 1);
}

TEST(System, DISABLED_wait) {
  Stream one, two;
  auto* words = reinterpret_cast<uint32_t*>(allocate(64));
  EXPECT_EQ(orMemset(words, 0, 64), orSuccess);
  {
    const TrialAsTold trial;
    EXPECT_EQ(orStreamWaitValue32(one, words, 1), orSuccess);
    for (int i = 0; i < 5000 && !trial.hasFailed(); ++i) usleep(1000);
    EXPECT_TRUE(trial.hasFailed());
  }
  EXPECT_EQ(orStreamWaitValue32(two, words + 1, 1), orSuccess);
  usleep(20000);
  EXPECT_EQ(orStreamWriteValue32(nullptr, words, 1), orSuccess);
  EXPECT_EQ(orStreamSynchronize(one), orSuccess);
  EXPECT_EQ(orStreamWriteValue32(nullptr, words + 1, 1), orSuccess);
  EXPECT_EQ(orStreamSynchronize(two), orSuccess);
}

TEST(System, may_refuse_to_wait_for_several_numbers_at_once) {
  EXPECT_EQ(again("System.DISABLED_wait", {"FAILS=futex_waitv", "AT=1"}), 0);
}

// With guards, each block takes two mappings, and a fault one more.
TEST(System, DISABLED_guards) {
  char* first = allocate(64);
  void* pointer = nullptr;
  {
    const TrialAsTold trial;
    const orError_t error = orMalloc(&pointer, 64);
    endIfNoneFailed(trial);
    EXPECT_EQ(error, orErrorMemoryAllocation);
  }
  EXPECT_EQ(orMalloc(&pointer, 64), orSuccess) << detail();
  EXPECT_EQ(orFree(pointer), orSuccess);
  EXPECT_EQ(orFree(first), orSuccess);
}

TEST(System, DISABLED_fault) {
  char* block = allocate(64);
  EXPECT_EQ(orMemset(block, 1, 64), orSuccess);
  const Trial trial("mprotect", 1);
  openreg::launch(nullptr, "one past", [block] {
    *(volatile char*)openreg::onDevice(block + 64) = 1;
  });
  orDeviceSynchronize();
}

TEST(System, may_refuse_guards) {
  EXPECT_EQ(trials("guards", "mprotect", {"OPENREG_SANITIZE=memory"}), 1);
}

TEST(System, that_cannot_open_a_page_for_a_fault_ends_the_process) {
  const int status =
      again("System.DISABLED_fault", {"OPENREG_SANITIZE=memory"});
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

}  // namespace system_test

#endif
