// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/tests/openreg/shorthands.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace {

// Whether the host can read this address. The system reads it for us, because
// it answers with an error where a program would be killed.
bool isOpen(const char* address) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool can = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

TEST(HostAccess, ends_when_the_block_is_freed) {
  char* block = allocate(10000);
  ASSERT_EQ(orMemoryUnprotect(block), orSuccess);
  EXPECT_TRUE(isOpen(block));
  EXPECT_TRUE(isOpen(block + 9999));
  ASSERT_EQ(orFree(block), orSuccess);
  char* again = allocate(10000);
  ASSERT_EQ(again, block);
  EXPECT_FALSE(isOpen(again));
  EXPECT_FALSE(isOpen(again + 9999));
  orFree(again);
}

TEST(HostAccess, of_a_page_lasts_as_long_as_one_of_its_blocks_has_it) {
  char* page = allocate(4096);
  orFree(page);
  std::vector<char*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(allocate(512));
  ASSERT_EQ(blocks[2] - blocks[0], 1024);
  for (char* block : blocks) ASSERT_EQ(orMemoryUnprotect(block), orSuccess);
  ASSERT_EQ(orMemoryProtect(blocks[1]), orSuccess);
  EXPECT_TRUE(isOpen(blocks[0]));
  ASSERT_EQ(orFree(blocks[0]), orSuccess);
  EXPECT_TRUE(isOpen(blocks[2]));
  ASSERT_EQ(orMemoryUnprotect(blocks[2]), orSuccess);
  ASSERT_EQ(orMemoryProtect(blocks[2]), orSuccess);
  EXPECT_FALSE(isOpen(blocks[2]));
  ASSERT_EQ(orMemoryProtect(blocks[2]), orSuccess);
  orFree(blocks[1]);
  orFree(blocks[2]);
}

TEST(HostAccess, of_neighbors_can_be_changed_by_two_threads) {
  char* here = allocate(512);
  char* there = allocate(512);
  const auto repeat = [](char* block) {
    for (int i = 0; i < 2000; ++i) {
      ASSERT_EQ(orMemoryUnprotect(block), orSuccess);
      ASSERT_TRUE(isOpen(block));
      ASSERT_EQ(orMemoryProtect(block), orSuccess);
    }
  };
  std::thread other(repeat, there);
  repeat(here);
  other.join();
  EXPECT_FALSE(isOpen(here));
  EXPECT_FALSE(isOpen(there));
  orFree(here);
  orFree(there);
}

}  // namespace
