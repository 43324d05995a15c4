// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace openreg::hardware {

// [common.order] A list of streams says which one runs wherever several could run.
/// A stream whose next command may run now.
struct Candidate {
  /// As the list names it.
  std::string stream;
  /// The place of that command in the order in which the host enqueued.
  uint64_t number = 0;
};

/// The choices of a schedule. A list such as `A,B,A` has one entry for each
/// choice between several streams; where there is one, it has none. Behind the
/// list, the command that was enqueued first runs. The list may end in `-C`, so
/// that from there on C runs only if no other stream can, and in `seed:N`, so
/// that from there on choices are random.
class Order {
 public:
  /// All choices are random.
  explicit Order(uint64_t seed) : random_(std::in_place, seed) {}
  Order() = default;
  /// Reads `list` into `order`; returns what is wrong with it, or nothing.
  static std::string parse(const std::string& list, Order* order);

  /// The place in `ready` of the stream to run. If the list names another
  /// stream, `problem` becomes the sentence that says so.
  size_t choose(const std::vector<Candidate>& ready, std::string* problem);
  /// A random one of `count` places. Allocates nothing.
  size_t draw(size_t count) { return (*random_)() % count; }

  // [common.order.state] The list is read once, from its beginning to its end.
 private:
  std::vector<std::string> list_;
  size_t next_ = 0;
  std::set<std::string> last_;
  std::optional<std::mt19937_64> random_;
};

/// Reads the number of `seed:N`; whether the entry is one.
bool readSeed(const std::string& entry, uint64_t* seed);

/// The name of the stream that is the `number`-th one to be used: A, B, ..., Z,
/// AA and so on. Number 0 is the host.
std::string streamName(size_t number);

// [-]
}  // namespace openreg::hardware
