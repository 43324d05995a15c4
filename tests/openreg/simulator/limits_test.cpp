// SPDX-License-Identifier: BSD-3-Clause
// What the driver takes from the host, and what it does where that is limited.
#include "torch_openreg/common/openreg/core/memory_limit.h"
#include "torch_openreg/tests/openreg/shorthands.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

// A sanitizer reserves terabytes for itself, so limits mean nothing there.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OPENREG_TEST_LIMITS
#endif

namespace {

#if defined(OPENREG_TEST_LIMITS)
constexpr size_t kMega = size_t{1} << 20;

TEST(Limits, a_core_dump_has_no_device_memory) {
  // In a process of its own, without the stacks of the other tests' threads.
  if (ranAgain({{}})) return;
  void *device, *pinned;
  ASSERT_EQ(orMalloc(&device, 64 << 20), orSuccess);
  ASSERT_EQ(orMallocHost(&pinned, 1 << 20), orSuccess);
  orMemset(device, 1, 64 << 20);
  std::memset(pinned, 1, 1 << 20);
  std::ifstream maps("/proc/self/smaps");
  long kilobytes = 0, dumped = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.rfind("Size:", 0) == 0) kilobytes = std::stol(line.substr(5));
    // The system dumps no mapping that cannot be read.
    if (line.rfind("VmFlags: rd", 0) == 0 &&
        line.find(" dd") == std::string::npos) {
      dumped += kilobytes;
    }
  }
  EXPECT_LT(dumped, 100 << 10);
  orFree(device);
  orFreeHost(pinned);
}

void limit(__rlimit_resource what, size_t most) {
  const rlimit limit = {most, RLIM_INFINITY};
  ASSERT_EQ(setrlimit(what, &limit), 0);
}

int openFiles() {
  int count = 0;
  for ([[maybe_unused]] auto& file :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

void smallDeviceFits() {
  void* pointer;
  ASSERT_EQ(orMalloc(&pointer, 60 * kMega), orSuccess) << detail();
  EXPECT_EQ(orMemset(pointer, 1, 60 * kMega), orSuccess);
  EXPECT_EQ(orFree(pointer), orSuccess);
  ASSERT_EQ(orMallocHost(&pointer, 60 * kMega), orSuccess) << detail();
  std::memset(pointer, 1, 60 * kMega);
  EXPECT_EQ(orFreeHost(pointer), orSuccess);
  // Half of the addresses that were left are the program's.
  EXPECT_NE(mmap(nullptr, 600 * kMega, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
            MAP_FAILED);
}

TEST(Limits, that_the_devices_do_not_fit_are_named_and_nothing_leaks) {
  if (ranAgain({{"OPENREG_DEVICE_MEMORY=512M"}})) return;
  void* pointer;
  limit(RLIMIT_AS, 1024 * kMega);
  const int files = openFiles();
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(orMalloc(&pointer, 1), orErrorUnknown);
  }
  EXPECT_NE(detail().find("make OPENREG_DEVICE_MEMORY smaller, or `ulimit -v` "
                          "larger."),
            std::string::npos)
      << detail();
  EXPECT_EQ(openFiles(), files);
  limit(RLIMIT_AS, RLIM_INFINITY);
  EXPECT_EQ(orMalloc(&pointer, 1), orSuccess) << detail();
  EXPECT_EQ(orFree(pointer), orSuccess);
}

TEST(Limits, of_files_are_named) {
  if (ranAgain({{"OPENREG_DEVICE_MEMORY=64M"}})) return;
  void* pointer;
  limit(RLIMIT_FSIZE, 64 * kMega);
  EXPECT_EQ(orMalloc(&pointer, 1), orErrorUnknown);
  EXPECT_NE(detail().find("(`ulimit -f`)"), std::string::npos) << detail();
}

TEST(Limits, of_addresses_shrink_the_reserves) {
  if (ranAgain({{"OPENREG_DEVICE_MEMORY=64M"},
                {"OPENREG_DEVICE_MEMORY=64M", "OPENREG_RESERVE=128M"}}))
    return;
  limit(RLIMIT_AS, 2048 * kMega);
  smallDeviceFits();
}

TEST(Limits, of_addresses_count_those_in_use) {
  if (ranAgain({{"OPENREG_DEVICE_MEMORY=64M"}})) return;
  ASSERT_NE(mmap(nullptr, 4096 * kMega, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
            MAP_FAILED);
  limit(RLIMIT_AS, (4096 + 2048) * kMega);
  smallDeviceFits();
}

TEST(Limits, of_data_do_not_count_the_reserves) {
  if (ranAgain({{"OPENREG_DEVICE_MEMORY=64M"}})) return;
  limit(RLIMIT_DATA, 256 * kMega);
  void *pointer, *more;
  ASSERT_EQ(orMallocHost(&pointer, 60 * kMega), orSuccess) << detail();
  std::memset(pointer, 1, 60 * kMega);
  EXPECT_EQ(orMallocHost(&more, 1024 * kMega), orErrorMemoryAllocation);
  EXPECT_EQ(orFreeHost(pointer), orSuccess);
}
#endif

class ControlGroups : public testing::Test {
 protected:
  ~ControlGroups() { std::filesystem::remove_all(root); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(root + file).parent_path());
    std::ofstream(root + file) << text << "\n";
  }
  const std::string root =
      testing::TempDir() + "openreg-groups-" + std::to_string(getpid());
};

TEST_F(ControlGroups, of_version_2_limit_memory_at_every_level) {
  EXPECT_EQ(openreg::hardware::memoryLimit(root), SIZE_MAX);
  write("/proc/self/cgroup", "0::/outer/inner");
  EXPECT_EQ(openreg::hardware::memoryLimit(root), SIZE_MAX);
  write("/sys/fs/cgroup/outer/inner/memory.max", "max");
  EXPECT_EQ(openreg::hardware::memoryLimit(root), SIZE_MAX);
  write("/sys/fs/cgroup/outer/memory.max", "3000");
  EXPECT_EQ(openreg::hardware::memoryLimit(root), 3000u);
  write("/sys/fs/cgroup/outer/inner/memory.max", "5000");
  EXPECT_EQ(openreg::hardware::memoryLimit(root), 3000u);
  // A container may see its own group as the root, under its outer name.
  write("/sys/fs/cgroup/memory.max", "2000");
  EXPECT_EQ(openreg::hardware::memoryLimit(root), 2000u);
}

TEST_F(ControlGroups, of_version_1_limit_memory_in_a_folder_of_its_own) {
  write("/proc/self/cgroup",
        "5:cpu,cpuacct:/other\n4:memory:/docker/x\n7:memory\n0::none\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "4096");
  write("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1");
  EXPECT_EQ(openreg::hardware::memoryLimit(root), 4096u);
}

}  // namespace
