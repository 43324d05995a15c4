// SPDX-License-Identifier: BSD-3-Clause
// measure.py for programs in C++: ways take turns, and a case is a line of
// JSON.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Microseconds of a clock that never goes back.
inline double now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Microseconds of one of `count` calls.
inline double perCall(int count, const std::function<void()>& call) {
  const double began = now();
  for (int i = 0; i < count; ++i) call();
  return (now() - began) / count;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

/// A way, and what measures one round of it and returns the time of one call.
using Ways = std::vector<std::pair<std::string, std::function<double()>>>;

/// Measures the ways in turn and prints the case. `more` is JSON, such as
/// `"at": 4, `.
inline void compare(const std::string& figure, const std::string& name,
                    int rounds, const Ways& ways,
                    const std::string& more = "") {
  for (const auto& [way, measure] : ways) measure();  // warms up
  std::vector<std::vector<double>> found(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i)
      found[i].push_back(ways[i].second());
  }
  std::string times, ratios;
  for (size_t i = 0; i < ways.size(); ++i) {
    std::vector<double> within;
    for (int round = 0; round < rounds; ++round)
      within.push_back(found[i][round] / found[0][round]);
    const auto item = [&](double value, bool is_first) {
      return (is_first ? "\"" : ", \"") + ways[i].first +
             "\": " + std::to_string(value);
    };
    times += item(median(found[i]), i == 0);
    if (i > 0) ratios += item(median(within), i == 1);
  }
  std::printf(
      "{\"figure\": \"%s\", \"case\": \"%s\", \"unit\": \"us\", %s\"times\": "
      "{%s}, \"ratios\": {%s}}\n",
      figure.c_str(), name.c_str(), more.c_str(), times.c_str(),
      ratios.c_str());
  std::fflush(stdout);
}
