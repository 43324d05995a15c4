// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/meeting.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

namespace openreg {

// [distributed.hosts.identity.default] The driver opens a peer's memory through /proc, so boot, process namespace and user must agree.
std::string hostIdentity() {
  if (const char* declared = std::getenv("OPENREG_HOST_ID")) return declared;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char processes[64] = {};
  if (readlink("/proc/self/ns/pid", processes, sizeof(processes) - 1) < 0) {
    processes[0] = 0;
  }
  return boot + " " + processes + " user " + std::to_string(getuid());
}

namespace {

// [distributed.hosts.identity.word] The word of a rank is new for each process and group.
constexpr size_t kRandomBytes = 8;

std::string newWord() {
  std::random_device random;
  std::string word;
  while (word.size() < kRandomBytes) {
    word += "0123456789abcdef"[random() % 16];
  }
  return word + hostIdentity();
}

/// Empty if there is none.
std::string entryOf(JoiningStore& store, const char* kind, int rank) {
  const std::string key = kind + std::to_string(rank);
  if (!store.check({key})) return "";
  const auto value = store.get(key);
  return {value.begin(), value.end()};
}

// [distributed.hosts.identity.check] The store is open to other programs, so what is no word is refused with its place.
std::string wordOf(JoiningStore& store, int rank) {
  constexpr size_t kMostBytes = 4096;
  std::string word = entryOf(store, "word/", rank);
  TORCH_CHECK_WITH(
      DistBackendError,
      word.empty() ||
          (word.size() >= kRandomBytes && word.size() <= kMostBytes),
      "The entry word/", rank, " of the store has ", word.size(),
      " bytes, and rank ", rank, " writes between ", kRandomBytes, " and ",
      kMostBytes, " there; another program seems to use the store.");
  return word;
}

bool areOfOneHost(const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return word.substr(kRandomBytes) == words[0].substr(kRandomBytes);
  });
}

// [-]
}  // namespace

// [distributed.hosts.meeting.hold] Only a living rank can have seen a word that is new.
Meeting::Meeting(int rank, int size)
    : rank_(rank), size_(size), word_(newWord()) {}

Meeting::Result Meeting::hold(JoiningStore& store) const {
  using Bytes = std::vector<uint8_t>;
  store.set("word/" + std::to_string(rank_), Bytes(word_.begin(), word_.end()));
  std::vector<std::string> words(size_);
  std::string seen, name;
  bool have_all_seen = false, is_over = false;
  store.pollUntilNothing([&]() -> std::string {
    name.clear();
    for (int rank = 0; rank < size_; ++rank) {
      words[rank] = wordOf(store, rank);
      name += (words[rank] + std::string(kRandomBytes, ' '))
                  .substr(0, kRandomBytes);
    }
    if (name != seen) {
      seen = name;
      store.set("seen/" + std::to_string(rank_),
                Bytes(name.begin(), name.end()));
    }
    // The words were read after every rank had written its own.
    is_over = have_all_seen;
    for (int rank = 0; rank < size_ && !is_over; ++rank) {
      const std::string theirs = entryOf(store, "seen/", rank);
      const size_t place = rank_ * kRandomBytes;
      if (theirs.size() < place ||
          theirs.compare(place, kRandomBytes, word_, 0, kRandomBytes) != 0) {
        return (words[rank].empty() ? "word/" : "seen/") + std::to_string(rank);
      }
    }
    have_all_seen = true;
    return is_over ? "" : "seen";
  });
  return {areOfOneHost(words), name};
}

// [-]
}  // namespace openreg
