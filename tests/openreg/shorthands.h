// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/tests/openreg/printed.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
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

/// Demands that a test of this program passes in a process of its own for each
/// of these settings.
inline void expectAgain(
    const std::string& test,
    const std::vector<std::vector<std::string>>& processes) {
  for (const std::vector<std::string>& settings : processes)
    EXPECT_EQ(again(test, settings), 0) << testing::PrintToString(settings);
}

/// The same for the test that calls this. In such a process it is false, and
/// the test goes on.
///
///     if (ranAgain(under({"blocking", "seed:1"}))) return;
inline bool ranAgain(std::vector<std::vector<std::string>> processes) {
  if (std::getenv("OPENREG_TEST_AGAIN")) return false;
  for (auto& settings : processes) settings.push_back("OPENREG_TEST_AGAIN=1");
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  expectAgain(std::string(test->test_suite_name()) + "." + test->name(),
              processes);
  return true;
}

/// The settings of each of these schedules.
inline std::vector<std::vector<std::string>> under(
    const std::vector<std::string>& schedules) {
  std::vector<std::vector<std::string>> processes;
  for (const std::string& schedule : schedules)
    processes.push_back({"OPENREG_SCHEDULE=" + schedule});
  return processes;
}
