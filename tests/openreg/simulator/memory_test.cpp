// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/tests/openreg/shorthands.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(Memory, freed_pages_are_zero_when_they_come_back) {
  const size_t bytes = 1 << 20;
  void* first = allocate(bytes);
  orMemsetAsync(first, 0x5a, bytes, nullptr);
  orFree(first);
  void* second = allocate(bytes);
  ASSERT_EQ(first, second);
  std::vector<char> out(bytes, 1);
  orMemcpy(out.data(), second, bytes, orMemcpyDeviceToHost);
  EXPECT_EQ(out, std::vector<char>(bytes, 0));
  orFree(second);
}

TEST(Memory, freed_pinned_pages_go_back_to_the_system) {
  const size_t bytes = 1 << 20;
  void *first, *second;
  ASSERT_EQ(orMallocHost(&first, bytes), orSuccess);
  std::memset(first, 0x5a, bytes);
  orFreeHost(first);
  ASSERT_EQ(orMallocHost(&second, bytes), orSuccess);
  ASSERT_EQ(first, second);
  EXPECT_EQ(static_cast<char*>(second)[bytes / 2], 0);
  orFreeHost(second);
}

TEST(Memory, a_block_that_is_freed_leaves_the_others_on_its_page) {
  std::vector<void*> blocks(16);
  for (void*& block : blocks) {
    block = allocate(512);
    orMemset(block, 0x5a, 512);
  }
  while (blocks.size() > 1) {
    orFree(blocks.back());
    blocks.pop_back();
    std::vector<char> out(512);
    orMemcpy(out.data(), blocks.back(), 512, orMemcpyDeviceToHost);
    EXPECT_EQ(out, std::vector<char>(512, 0x5a));
  }
  orFree(blocks.back());
}

// Kilobytes of shared memory, device memory among it, that this process holds.
long sharedKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssShmem:", 0) == 0) return std::stol(line.substr(9));
  }
  return -1;
}

TEST(Memory, pages_go_back_to_the_system_when_they_are_freed) {
  const size_t bytes = 64 << 20;
  void* pointer = allocate(bytes);
  const long before = sharedKilobytes();
  orMemset(pointer, 1, bytes);
  EXPECT_GE(sharedKilobytes() - before, 64 << 10);
  orFree(pointer);
  EXPECT_LT(sharedKilobytes() - before, 1 << 10);
}

TEST(Memory, a_write_that_was_pending_when_memory_was_freed_stays_invisible) {
  char* pointer = allocate(1 << 20);
  openreg::launch(nullptr, "late", [pointer] {
    usleep(10000);
    std::memset(openreg::onDevice(pointer), 7, 1 << 20);
  });
  orFree(pointer);
  EXPECT_EQ(orStreamQuery(nullptr), orSuccess);
  ASSERT_EQ(allocate(1 << 20), pointer);
  std::vector<char> out(1 << 20, 1);
  orMemcpy(out.data(), pointer, 1 << 20, orMemcpyDeviceToHost);
  EXPECT_EQ(out, std::vector<char>(1 << 20, 0));
  orFree(pointer);
}

// A pattern of which no two pieces are the same.
std::vector<char> pattern(size_t bytes, unsigned seed) {
  std::vector<char> out(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    seed = seed * 1664525 + 1013904223;
    out[i] = static_cast<char>(seed >> 24);
  }
  return out;
}

TEST(Copy, of_many_bytes_from_several_threads_mixes_nothing_up) {
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    threads.emplace_back([seed] {
      orSetDevice(seed % 2);
      const size_t bytes = (5 << 20) + seed * 12345;
      const std::vector<char> in = pattern(bytes, seed);
      std::vector<char> out(bytes);
      void *a = allocate(bytes), *b = allocate(bytes);
      orMemcpy(a, in.data(), bytes, orMemcpyHostToDevice);
      orMemcpy(b, a, bytes, orMemcpyDeviceToDevice);
      orMemcpy(out.data(), b, bytes, orMemcpyDeviceToHost);
      EXPECT_TRUE(in == out);
      orFree(a);
      orFree(b);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Copy, of_more_bytes_than_a_cache_holds_copies_all_of_them) {
  const size_t bytes = (33 << 20) + 12345;
  const std::vector<char> in = pattern(bytes, 5);
  std::vector<char> out(bytes + 16);
  char* block = allocate(bytes + 16);
  for (size_t shift : {0, 1, 16}) {
    orMemcpy(block + shift, in.data(), bytes, orMemcpyHostToDevice);
    orMemcpy(out.data() + shift, block + shift, bytes, orMemcpyDeviceToHost);
    EXPECT_EQ(std::memcmp(out.data() + shift, in.data(), bytes), 0) << shift;
  }
  orFree(block);
}

TEST(Copy, of_many_bytes_may_overlap) {
  const size_t bytes = 6 << 20, shift = 12345;
  const std::vector<char> in = pattern(bytes, 9);
  std::vector<char> out(bytes - shift);
  char* block = allocate(bytes);
  orMemcpy(block, in.data(), bytes, orMemcpyHostToDevice);
  orMemcpy(block + shift, block, bytes - shift, orMemcpyDeviceToDevice);
  orMemcpy(out.data(), block + shift, bytes - shift, orMemcpyDeviceToHost);
  EXPECT_TRUE(std::memcmp(out.data(), in.data(), bytes - shift) == 0);
  orFree(block);
}

}  // namespace
