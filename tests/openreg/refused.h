// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/tests/openreg/printed.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

/// A call and its text.
struct Call {
  const char* text;
  std::function<orError_t()> make;
};
inline std::string nameOf(const std::string& text) {
  return text.substr(0, text.find('('));
}
#define CALL(...) Call(#__VA_ARGS__, [&] { return __VA_ARGS__; })

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
  /// Each call is refused with this code and a sentence, and takes no memory.
  void expectAll(orError_t code, const std::vector<Call>& calls) {
    size_t before, after, total;
    orMemGetInfo(&before, &total);
    for (const auto& [text, make] : calls) {
      orGetLastError();
      EXPECT_EQ(make(), code) << text << ": " << orGetErrorDetail();
      EXPECT_EQ(orPeekAtLastError(), code) << text;
      const std::string detail = orGetErrorDetail();
      EXPECT_TRUE(detail.ends_with('.'))
          << text << ": the detail is a sentence, and ends in a full stop; "
          << "here it is \"" << detail << '"';
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
