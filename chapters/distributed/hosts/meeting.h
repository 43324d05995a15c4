// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/distributed/communicators/joining_store.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace openreg {

// [distributed.hosts.identity] Two ranks are on one host if one can open the other's memory, through /proc.
/// The environment variable OPENREG_HOST_ID, if it is set. Otherwise a string
/// that is the same for processes of one user that see each other's process
/// numbers, and so each other's memory files.
inline std::string hostIdentity() {
  if (const char* declared = std::getenv("OPENREG_HOST_ID")) return declared;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char processes[64] = {};
  if (readlink("/proc/self/ns/pid", processes, sizeof(processes) - 1) < 0) {
    processes[0] = 0;
  }
  return boot + " " + processes + " user " + std::to_string(getuid());
}

// [distributed.hosts.identity.word] The word of a rank is new for each process and group.
inline constexpr size_t kRandomBytes = 8;

/// Random, and then the host.
inline std::string newWord() {
  std::random_device random;
  std::string word;
  while (word.size() < kRandomBytes) {
    word += "0123456789abcdef"[random() % 16];
  }
  return word + hostIdentity();
}

// [distributed.hosts.identity.check] Other programs may write to the store, so an entry that is no word is refused with its key.
/// Empty if there is none.
inline std::string wordOf(JoiningStore& store, int rank) {
  constexpr size_t kMostBytes = 4096;
  const std::string key = c10::str("word/", rank);
  const std::string word = store.check({key}) ? store.get_to_str(key) : "";
  TORCH_CHECK_WITH(
      DistBackendError,
      word.empty() ||
          (word.size() >= kRandomBytes && word.size() <= kMostBytes),
      "The entry ", key, " of the store has ", word.size(), " bytes, and rank ",
      rank, " writes between ", kRandomBytes, " and ", kMostBytes,
      " there; another program seems to use the store.");
  return word;
}

// [distributed.hosts.meeting] A store may hold what ranks of an earlier attempt left there, so the ranks first make sure that all of them live.
/// What all ranks of a group know after they have met.
struct Meeting {
  bool is_one_host;  ///< every rank can open the memory of every other one
  /// The same on all ranks, and different for each meeting.
  std::string name{};
};

/// Whether all words end with the same host.
inline bool areOfOneHost(const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(), [&](const std::string& each) {
    return each.substr(kRandomBytes) == words[0].substr(kRandomBytes);
  });
}

// [distributed.hosts.meeting.hold] Only a living rank can have seen a word that is new.
/// Waits until every rank has seen the word of every other one. May be called
/// again, with the same word, after an exception.
/// @throws c10::DistBackendError if that takes too long.
inline Meeting meet(JoiningStore& store, int rank, int size,
                    const std::string& word) {
  const auto randomOf = [](std::string text) {
    text.resize(kRandomBytes, ' ');
    return text;
  };
  const std::string ours = randomOf(word);
  // Several processes may make a group of one rank each, with one store.
  if (size == 1) return {true, ours};
  std::vector<std::string> words(size);
  Meeting meeting{};
  store.set(c10::str("word/", rank), word);
  store.pollUntilNothing([&]() -> std::string {
    std::string missing;
    for (int owner = 0; owner < size && missing.empty(); ++owner) {
      const std::string key = c10::str("seen/", owner);
      const std::string seen = store.check({key}) ? store.get_to_str(key) : "";
      const size_t place = std::min(rank * kRandomBytes, seen.size());
      if (seen.compare(place, kRandomBytes, ours) == 0) continue;
      missing = words[owner].empty() ? c10::str("word/", owner) : key;
    }
    // If nothing is missing, every rank has written its word before this.
    meeting.name.clear();
    for (int owner = 0; owner < size; ++owner) {
      words[owner] = wordOf(store, owner);
      meeting.name += randomOf(words[owner]);
    }
    store.set(c10::str("seen/", rank), meeting.name);
    return missing;
  });
  meeting.is_one_host = areOfOneHost(words);
  return meeting;
}

// [-]
}  // namespace openreg
