// SPDX-License-Identifier: BSD-3-Clause
// A block for another process, which finds its handle in the environment.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/tests/openreg/shorthands.h"

#include <cstdio>
#include <cstdlib>
#include <string>

/// The setting with which another process of this program is started.
inline std::string handleOf(void* pointer) {
  orIpcMemHandle_t handle;
  EXPECT_EQ(orIpcGetMemHandle(&handle, pointer), orSuccess) << detail();
  std::string text = "OPENREG_TEST_HANDLE=";
  for (const char byte : handle.reserved) {
    char hex[3];
    std::snprintf(hex, 3, "%02x", static_cast<unsigned char>(byte));
    text += hex;
  }
  return text;
}

inline orIpcMemHandle_t handleOfParent() {
  orIpcMemHandle_t handle;
  const std::string text = std::getenv("OPENREG_TEST_HANDLE");
  for (size_t i = 0; i < sizeof(handle.reserved); ++i) {
    handle.reserved[i] =
        static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

/// The block of the process that started this one.
inline void* openOfParent() {
  void* pointer = nullptr;
  EXPECT_EQ(orIpcOpenMemHandle(&pointer, handleOfParent()), orSuccess)
      << detail();
  return pointer;
}
