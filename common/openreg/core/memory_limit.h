// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

namespace openreg::hardware {

// [common.memory-limit] A container has less memory than its machine, and only its control groups know.
/// The number in the file at `path`; SIZE_MAX if there is none, or no file.
inline size_t readLimit(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  size_t limit = SIZE_MAX;
  if (file >> text) {
    std::from_chars(text.data(), text.data() + text.size(), limit);
  }
  return limit;
}

/// The smallest limit on the memory of this process, in bytes, that its control
/// group or one around it has, in version 1 or 2; SIZE_MAX if there is none.
/// File names are relative to `root`.
inline size_t memoryLimit(const std::string& root = "") {
  size_t limit = SIZE_MAX;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t names = line.find(':') + 1;
    const size_t colon = line.find(':', names);
    if (names == 0 || colon == std::string::npos) continue;
    const std::string kinds = "," + line.substr(names, colon - names) + ",";
    const bool is_unified = kinds == ",,";
    if (!is_unified && kinds.find(",memory,") == std::string::npos) continue;
    std::string group = line.substr(colon + 1);
    for (;;) {
      limit = std::min(
          limit, is_unified ? readLimit(root + "/sys/fs/cgroup" + group +
                                        "/memory.max")
                            : readLimit(root + "/sys/fs/cgroup/memory" + group +
                                        "/memory.limit_in_bytes"));
      if (group.empty()) break;
      group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
  }
  return limit;
}

// [-]
}  // namespace openreg::hardware
