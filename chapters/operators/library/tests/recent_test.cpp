// SPDX-License-Identifier: BSD-3-Clause
// Keys that differ only sometimes would let wrong calls pass, only sometimes.
#include "torch_openreg/common/math/checks/recent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

size_t different(std::vector<size_t> keys) {
  std::sort(keys.begin(), keys.end());
  return std::unique(keys.begin(), keys.end()) - keys.begin();
}

TEST(Key, all_pairs_of_dtypes_and_dimensions_and_many_triples_have_their_own) {
  std::vector<size_t> tensors;
  for (size_t dtype = 0; dtype < 46; ++dtype) {
    for (size_t dimensions = 0; dimensions < 6; ++dimensions) {
      for (size_t elements = 0; elements < 3; ++elements)
        tensors.push_back(dtype | dimensions << 8 | elements << 16);
    }
  }
  for (const size_t op : {size_t{0}, size_t{1}, size_t{0x7f3a5c2d1e40}}) {
    std::vector<size_t> pairs, triples;
    for (const size_t first : tensors) {
      for (const size_t second : tensors) {
        pairs.push_back(
            openreg::followedBy(openreg::followedBy(op, first), second));
        if (first % 31 || second % 29) continue;
        for (const size_t third : tensors)
          triples.push_back(openreg::followedBy(pairs.back(), third));
      }
    }
    EXPECT_EQ(different(pairs), pairs.size());
    EXPECT_EQ(different(triples), triples.size());
  }
}

TEST(Key, no_short_sequence_has_the_key_of_nothing) {
  for (size_t value = 0; value < 1000; ++value)
    EXPECT_NE(openreg::followedBy(0, value), 0);
}

}  // namespace
