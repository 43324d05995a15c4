// SPDX-License-Identifier: BSD-3-Clause
// Handles that were damaged or invented.
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/openreg/tools/ipc_memory.h"
#include "torch_openreg/tests/openreg/shorthands.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using openreg::hardware::IpcBlock;

class Handle : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(orMalloc(&ours_, 10000), orSuccess);
    ASSERT_EQ(orMemset(ours_, 7, 10000), orSuccess);
    orIpcMemHandle_t handle;
    ASSERT_EQ(orIpcGetMemHandle(&handle, ours_), orSuccess);
    std::memcpy(&block, handle.reserved, sizeof(block));
  }
  void TearDown() override {
    // A handle that was refused has used up nothing.
    void* theirs;
    ASSERT_EQ(open(&theirs), orSuccess) << orGetErrorDetail();
    char out[10000];
    EXPECT_EQ(orMemcpy(out, theirs, 10000, orMemcpyDeviceToHost), orSuccess);
    EXPECT_EQ(out[9999], 7);
    EXPECT_EQ(orIpcCloseMemHandle(theirs), orSuccess);
    EXPECT_EQ(orFree(ours_), orSuccess);
  }
  orError_t open(void** theirs) { return open(block, theirs); }
  orError_t open(const IpcBlock& block, void** theirs) {
    orIpcMemHandle_t handle = {};
    std::memcpy(handle.reserved, &block, sizeof(block));
    return orIpcOpenMemHandle(theirs, handle);
  }
  void expectRefused(const IpcBlock& block, const std::string& sentence) {
    void* theirs = nullptr;
    EXPECT_EQ(open(block, &theirs), orErrorInvalidResourceHandle);
    EXPECT_NE(std::string(orGetErrorDetail()).find(sentence), std::string::npos)
        << orGetErrorDetail();
    EXPECT_EQ(theirs, nullptr);
  }

  IpcBlock block;

 private:
  void* ours_ = nullptr;
};

TEST_F(Handle, of_another_origin_is_refused) {
  IpcBlock wrong = block;
  wrong.magic ^= 1;
  expectRefused(wrong, "not one that orIpcGetMemHandle wrote.");
  wrong = block;
  wrong.process = 0x7fffffff;
  expectRefused(wrong, "cannot be opened");
  wrong = block;
  wrong.file = -1;
  expectRefused(wrong, "cannot be opened");
}

// Its addresses are forgotten when it is closed.
TEST_F(Handle, opens_under_a_search_for_races_and_is_gone_when_it_is_closed) {
  EXPECT_EQ(orFindRaces(1), orSuccess);
  void* theirs = nullptr;
  ASSERT_EQ(open(&theirs), orSuccess);
  EXPECT_EQ(orMemset(theirs, 7, 10000), orSuccess);
  EXPECT_EQ(orIpcCloseMemHandle(theirs), orSuccess);
  EXPECT_EQ(orFindRaces(0), orSuccess);
  char byte = 0;
  EXPECT_EQ(orMemcpy(&byte, theirs, 1, orMemcpyHostToHost),
            orErrorInvalidValue);
  EXPECT_NE(std::string(orGetErrorDetail()).find("but in no block"),
            std::string::npos)
      << orGetErrorDetail();
}

TEST(Handles, need_addresses) {
  if (ranAgain({{"OPENREG_RESERVE=1M"}})) return;
  char* block = allocate(2 << 20);
  orIpcMemHandle_t handle;
  ASSERT_EQ(orIpcGetMemHandle(&handle, block), orSuccess);
  void* opened = nullptr;
  EXPECT_EQ(orIpcOpenMemHandle(&opened, handle), orErrorMemoryAllocation);
  EXPECT_STREQ(orGetErrorDetail(),
               "There are no addresses left for 2097152 bytes of another "
               "process.");
}

TEST_F(Handle, of_a_file_that_is_not_device_memory_is_refused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int null = ::open("/dev/null", O_RDWR);
  const int other = memfd_create("other", 0);
  const int namesake = memfd_create("openreg", 0);
  ASSERT_EQ(ftruncate(namesake, 1 << 30), 0);
  for (int file : {ends[0], ends[1], null, other, namesake}) {
    IpcBlock wrong = block;
    wrong.file = file;
    expectRefused(wrong, "cannot be opened");
    struct stat about;
    ASSERT_EQ(fstat(file, &about), 0);
    wrong.inode = about.st_ino;
    if (file != namesake) expectRefused(wrong, "cannot be opened");
    close(file);
  }
}

/// What a driver's file is, apart from what `change` does to it.
int memoryFile(const std::function<int(int)>& change, int seals) {
  const int file = memfd_create("openreg", MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(file, 1 << 30), 0);
  EXPECT_EQ(fchmod(file, 0600), 0);
  EXPECT_EQ(change(file), 0);
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

TEST_F(Handle, of_a_file_that_others_may_change_is_refused) {
  const auto same = [](int) { return 0; };
  const auto open_to_all = [](int file) { return fchmod(file, 0666); };
  const auto of_another = [](int file) { return fchown(file, 12345, -1); };
  std::vector<int> wrong_files = {memoryFile(same, F_SEAL_SHRINK),
                                  memoryFile(same, F_SEAL_GROW | F_SEAL_SEAL),
                                  memoryFile(open_to_all, kAllSeals)};
  if (geteuid() == 0) wrong_files.push_back(memoryFile(of_another, kAllSeals));
  const int right = memoryFile(same, kAllSeals);
  for (int file : wrong_files) {
    IpcBlock wrong = block;
    struct stat about;
    ASSERT_EQ(fstat(file, &about), 0);
    wrong.file = file;
    wrong.inode = about.st_ino;
    expectRefused(wrong,
                  "cannot be opened; it has ended, or is another user's.");
    close(file);
  }
  IpcBlock other = block;
  struct stat about;
  ASSERT_EQ(fstat(right, &about), 0);
  other.file = right;
  other.inode = about.st_ino;
  void* theirs = nullptr;
  EXPECT_EQ(open(other, &theirs), orSuccess) << orGetErrorDetail();
  EXPECT_EQ(orIpcCloseMemHandle(theirs), orSuccess);
  close(right);
}

TEST_F(Handle, does_not_let_its_holder_cut_off_the_memory) {
  struct stat about;
  const std::string path = "/proc/self/fd/" + std::to_string(block.file);
  const int file = ::open(path.c_str(), O_RDWR);
  ASSERT_EQ(fstat(file, &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(about.st_uid, geteuid());
  EXPECT_EQ(ftruncate(file, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(file, about.st_size + 4096), -1);
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
  close(file);
}

TEST_F(Handle, of_random_bytes_is_refused) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    orIpcMemHandle_t handle;
    for (char& byte : handle.reserved) byte = static_cast<char>(random());
    // Half of them have what a driver writes first, and some a living process.
    if (round % 2) std::memcpy(handle.reserved, &block, 8);
    if (round % 4 == 3) std::memcpy(handle.reserved, &block, 20);
    if (round % 8 == 7) std::memcpy(handle.reserved, &block, 32);
    void* theirs = nullptr;
    const orError_t error = orIpcOpenMemHandle(&theirs, handle);
    EXPECT_TRUE(error == orErrorInvalidResourceHandle ||
                error == orErrorInvalidDevice)
        << orGetErrorDetail();
    EXPECT_EQ(theirs, nullptr);
    EXPECT_EQ(std::string(orGetErrorDetail()).back(), '.');
  }
}

TEST_F(Handle, of_a_place_outside_the_memory_is_refused) {
  int devices;
  orGetDeviceCount(&devices);
  orDeviceProp properties;
  orGetDeviceProperties(&properties, 0);
  const uint64_t end = devices * properties.totalGlobalMem;
  const uint64_t most = ~uint64_t{0};
  for (const auto& [offset, size] : {std::pair{end, uint64_t{1}},
                                     {uint64_t{0}, end + 1},
                                     {end - 1, 2ul},
                                     {uint64_t{0}, most},
                                     {most, uint64_t{1}},
                                     {most, most},
                                     {1ul, most},
                                     {uint64_t{0}, uint64_t{0}}}) {
    IpcBlock wrong = block;
    wrong.offset = offset;
    wrong.size = size;
    expectRefused(wrong, "which are not in the memory of process");
  }
}

}  // namespace
