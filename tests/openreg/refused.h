// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/tests/openreg/printed.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

struct Refusal {
  const char* what;
  orError_t code;
  std::function<orError_t()> call;
};

class Refused : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(orMalloc(&block, 100), orSuccess);
    ASSERT_EQ(orMallocHost(&pinned, 100), orSuccess);
    ASSERT_EQ(orMalloc(&freed, 100), orSuccess);
    ASSERT_EQ(orFree(freed), orSuccess);
    ASSERT_EQ(orStreamCreate(&gone_stream), orSuccess);
    ASSERT_EQ(orStreamDestroy(gone_stream), orSuccess);
    ASSERT_EQ(orEventCreate(&event), orSuccess);
    ASSERT_EQ(orEventCreate(&gone_event), orSuccess);
    ASSERT_EQ(orEventDestroy(gone_event), orSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(orFree(block), orSuccess);
    EXPECT_EQ(orFreeHost(pinned), orSuccess);
    EXPECT_EQ(orEventDestroy(event), orSuccess);
    EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  }
  void expectAll(const std::vector<Refusal>& refusals) {
    size_t before, after, total;
    orMemGetInfo(&before, &total);
    for (const Refusal& refusal : refusals) {
      orGetLastError();
      EXPECT_EQ(refusal.call(), refusal.code)
          << refusal.what << ": " << orGetErrorDetail();
      EXPECT_EQ(orPeekAtLastError(), refusal.code) << refusal.what;
      const std::string detail = orGetErrorDetail();
      EXPECT_TRUE(detail.ends_with('.'))
          << refusal.what << ": the detail is a sentence, and ends in a full "
          << "stop; here it is \"" << detail << '"';
    }
    orMemGetInfo(&after, &total);
    EXPECT_EQ(before, after);
  }

  void *block, *pinned, *freed;
  char host[100] = {};
  orStream_t gone_stream;
  orEvent_t event, gone_event;
  orStream_t no_stream = reinterpret_cast<orStream_t>(0x77700001);
  orEvent_t no_event = reinterpret_cast<orEvent_t>(0x77700001);
};
