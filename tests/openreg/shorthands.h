// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/tests/openreg/printed.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

inline std::string detail() { return orGetErrorDetail(); }

/// A block of the current device.
inline char* allocate(size_t bytes) {
  void* pointer = nullptr;
  EXPECT_EQ(orMalloc(&pointer, bytes), orSuccess) << orGetErrorDetail();
  return static_cast<char*>(pointer);
}

/// Starts one test of this program again, in a fresh process with these
/// settings of the environment.
inline pid_t start(const std::string& test, std::vector<std::string> settings) {
  std::string filter = "--gtest_filter=" + test;
  std::string disabled = "--gtest_also_run_disabled_tests";
  char program[] = "/proc/self/exe";
  char* arguments[] = {program, filter.data(), disabled.data(), nullptr};
  std::vector<char*> environment;
  for (std::string& setting : settings) environment.push_back(setting.data());
  for (char** old = environ; *old; ++old) environment.push_back(*old);
  environment.push_back(nullptr);
  char self[4096] = {};
  EXPECT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  pid_t child;
  EXPECT_EQ(posix_spawn(&child, self, nullptr, nullptr, arguments,
                        environment.data()),
            0);
  return child;
}

/// The status of a child that has ended, as `waitpid` gives it.
inline int statusOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

/// The status of `start` for these arguments.
inline int again(const std::string& test, std::vector<std::string> settings) {
  return statusOf(start(test, std::move(settings)));
}
