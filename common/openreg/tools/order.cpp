// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/order.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace openreg::hardware {

// [common.order.name] Streams are named in the order in which a program first uses them, which is the same in every run.
std::string streamName(size_t number) {
  if (number == 0) return "host";
  std::string name;
  for (; number > 0; number = (number - 1) / 26) {
    name.insert(name.begin(), static_cast<char>('A' + (number - 1) % 26));
  }
  return name;
}

// [common.order.parse] An entry that could never name a stream is refused before anything runs.
static bool isStream(const std::string& name) {
  return name == "host" ||
         (!name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
           return c >= 'A' && c <= 'Z';
         }));
}

bool readSeed(const std::string& entry, uint64_t* seed) {
  if (entry.rfind("seed:", 0) != 0) return false;
  const char* const end = entry.data() + entry.size();
  const auto [rest, error] = std::from_chars(entry.data() + 5, end, *seed);
  return rest == end && error == std::errc{};
}

std::string Order::parse(const std::string& list, Order* order) {
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    uint64_t seed = 0;
    if (order->random_)
      return "Nothing may follow the seed, but " + entry + " does.";
    if (isStream(entry) && order->last_.empty()) {
      order->list_.push_back(entry);
    } else if (entry[0] == '-' && isStream(entry.substr(1))) {
      order->last_.insert(entry.substr(1));
    } else if (readSeed(entry, &seed)) {
      order->random_.emplace(seed);
    } else {
      return "Entry " + entry +
             " is no stream, and streams are named A, B, ..., Z, AA and so on, "
             "or host.";
    }
  }
  return "";
}

// [common.order.choose] Where the list ends, commands run in the order in which the program enqueued them.
static std::string describe(const std::vector<Candidate>& ready) {
  std::string names;
  for (const Candidate& each : ready) {
    names += (names.empty() ? "" : ", ") + each.stream;
  }
  return names;
}

size_t Order::choose(const std::vector<Candidate>& ready,
                     std::string* problem) {
  if (ready.size() == 1) return 0;
  if (next_ < list_.size()) {
    const std::string& wanted = list_[next_++];
    for (size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].stream == wanted) return i;
    }
    *problem = "choice " + std::to_string(next_) +
               " of OPENREG_SCHEDULE=order is " + wanted +
               ", and what can run there is " + describe(ready);
  }
  if (random_) return draw(ready.size());
  const auto isBefore = [&](const Candidate& one, const Candidate& other) {
    const bool one_is_last = last_.count(one.stream) > 0;
    const bool other_is_last = last_.count(other.stream) > 0;
    return one_is_last != other_is_last ? other_is_last
                                        : one.number < other.number;
  };
  return std::min_element(ready.begin(), ready.end(), isBefore) - ready.begin();
}

// [-]
}  // namespace openreg::hardware
