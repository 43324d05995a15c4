// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/tests/openreg/allocate.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace {

TEST(Memory, what_is_copied_in_comes_out_again) {
  std::vector<int> in(1 << 16), out(1 << 16);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7);
  const size_t bytes = in.size() * sizeof(int);
  void* a = allocate(bytes);
  void* b = allocate(bytes);
  EXPECT_EQ(orMemcpy(a, in.data(), bytes, orMemcpyHostToDevice), orSuccess);
  EXPECT_EQ(orMemcpy(b, a, bytes, orMemcpyDeviceToDevice), orSuccess);
  EXPECT_EQ(orMemcpy(out.data(), b, bytes, orMemcpyDeviceToHost), orSuccess);
  EXPECT_EQ(in, out);
  orFree(a);
  orFree(b);
}

TEST(Memory, addresses_are_aligned_to_512_bytes) {
  for (size_t bytes : {1, 511, 512, 513, 4097}) {
    void* pointer = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 512, 0u);
    orFree(pointer);
  }
}

TEST(Memory, nothing_is_leaked) {
  size_t before, after, total;
  orMemGetInfo(&before, &total);
  std::vector<void*> blocks;
  for (size_t i = 1; i < 200; ++i) blocks.push_back(allocate(i * 100));
  orMemGetInfo(&after, &total);
  EXPECT_LT(after, before);
  EXPECT_GE(total, before);
  for (size_t i = 0; i < blocks.size(); i += 2) orFree(blocks[i]);
  for (size_t i = 1; i < blocks.size(); i += 2) orFree(blocks[i]);
  orMemGetInfo(&after, &total);
  EXPECT_EQ(before, after);
}

TEST(Memory, freeing_waits_for_work_that_still_writes) {
  void* pointer = allocate(1 << 20);
  enqueue(nullptr, [] { usleep(10000); });
  orMemsetAsync(pointer, 7, 1 << 20, nullptr);
  EXPECT_EQ(orFree(pointer), orSuccess);
  EXPECT_EQ(orStreamQuery(nullptr), orSuccess);
}

TEST(Memory, a_fill_waits_for_what_comes_before_it) {
  void* pointer = allocate(64);
  std::atomic<bool> ran{false};
  enqueue(nullptr, [&] {
    usleep(10000);
    ran = true;
  });
  EXPECT_EQ(orMemset(pointer, 7, 64), orSuccess);
  EXPECT_TRUE(ran);
  orFree(pointer);
}

TEST(Memory, a_pointer_is_recognized_anywhere_inside_its_block) {
  char* device = static_cast<char*>(allocate(1000));
  void* pinned;
  ASSERT_EQ(orMallocHost(&pinned, 1000), orSuccess);
  int stack;
  orPointerAttributes at;
  orPointerGetAttributes(&at, device + 999);
  EXPECT_EQ(at.type, orMemoryTypeDevice);
  EXPECT_EQ(at.device, 0);
  EXPECT_EQ(at.pointer, device);
  EXPECT_EQ(at.size, 1000u);
  orPointerGetAttributes(&at, device + 1000);
  EXPECT_EQ(at.type, orMemoryTypeUnmanaged);
  orPointerGetAttributes(&at, static_cast<char*>(pinned) + 500);
  EXPECT_EQ(at.type, orMemoryTypeHost);
  orPointerGetAttributes(&at, &stack);
  EXPECT_EQ(at.type, orMemoryTypeUnmanaged);
  orFree(device);
  orFreeHost(pinned);
}

TEST(Memory, a_full_device_has_no_room) {
  size_t free, total;
  orMemGetInfo(&free, &total);
  void* pointer = &free;
  EXPECT_EQ(orMalloc(&pointer, total + 1), orErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
}

TEST(Memory, a_wrong_copy_is_refused_and_changes_nothing) {
  char host[64] = "unchanged";
  char* device = static_cast<char*>(allocate(32));
  EXPECT_EQ(orMemcpy(device, host, 33, orMemcpyHostToDevice),
            orErrorInvalidValue);
  EXPECT_EQ(orMemcpy(host, device, 32, orMemcpyHostToDevice),
            orErrorInvalidMemcpyDirection);
  EXPECT_EQ(orMemcpy(host, device, 32, orMemcpyHostToHost),
            orErrorInvalidMemcpyDirection);
  EXPECT_EQ(orMemcpy(host, nullptr, 32, orMemcpyHostToHost),
            orErrorInvalidValue);
  EXPECT_EQ(orMemcpy(host, device, 32, static_cast<orMemcpyKind>(9)),
            orErrorInvalidMemcpyDirection);
  EXPECT_STREQ(host, "unchanged");
  EXPECT_EQ(orFree(device), orSuccess);
}

TEST(Memory, a_pageable_source_may_be_changed_once_the_copy_returned) {
  void* device = allocate(4096);
  std::vector<char> source(4096, 'a'), out(4096);
  Stream stream;
  enqueue(stream, [] { usleep(20000); });
  orMemcpyAsync(device, source.data(), 4096, orMemcpyHostToDevice, stream);
  source.assign(4096, 'b');
  orStreamSynchronize(stream);
  orMemcpy(out.data(), device, 4096, orMemcpyDeviceToHost);
  EXPECT_EQ(out, std::vector<char>(4096, 'a'));
  orFree(device);
}

TEST(Memory, a_copy_from_pinned_memory_does_not_wait) {
  void *device = allocate(4096), *pinned;
  orMallocHost(&pinned, 4096);
  std::atomic<bool> go{false};
  Stream stream;
  enqueue(stream, until(go));
  EXPECT_EQ(orMemcpyAsync(device, pinned, 4096, orMemcpyHostToDevice, stream),
            orSuccess);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  go = true;
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  orFreeHost(pinned);
  orFree(device);
}

TEST(Memory, a_forked_child_is_refused) {
  orFree(allocate(1));
  const pid_t child = fork();
  if (child == 0) {
    void* pointer;
    const bool refused = orMalloc(&pointer, 1) == orErrorForked;
    _exit(refused && orIsForked() ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(orIsForked());
}

}  // namespace
