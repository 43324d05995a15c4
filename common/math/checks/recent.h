// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace openreg {

// [common.recent] The cache has two generations, so that a full cache does not lose everything at once.
/// Remembers at least the last 4096 values that were inserted or found, and at
/// most twice as many.
template <class Key, class Value>
class Recent {
 public:
  /// Null if there is no value for `key`; valid until the next call.
  const Value* find(const Key& key) {
    const auto found = young_.find(key);
    if (found != young_.end()) return &found->second;
    auto old = old_.extract(key);
    if (old.empty()) return nullptr;
    return &insert(std::move(old.key()), std::move(old.mapped()));
  }

  /// For a key that `find` did not find; if it was inserted since, that value
  /// stays.
  const Value& insert(Key key, Value value) {
    if (young_.size() == 4096) old_ = std::exchange(young_, {});
    return young_.emplace(std::move(key), std::move(value)).first->second;
  }

 private:
  std::unordered_map<Key, Value> young_, old_;
};

// [common.recent.key] Calls are told apart by their keys alone, so small numbers in different places must not make the same key.
/// The key of what `key` stands for, followed by `value`. PyTorch's
/// `hash_combine` does not serve: it adds small numbers to each other, and more
/// than a third of all pairs of tensors share their hash with another pair.
inline size_t followedBy(size_t key, size_t value) {
  // 2^64 divided by the golden ratio; the shift brings the high bits down.
  key = ((key ^ value) + 1) * 0x9E3779B97F4A7C15;
  return key ^ key >> 32;
}

// [-]
}  // namespace openreg
