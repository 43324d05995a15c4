// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/races/history.h"
#include "torch_openreg/common/openreg/races/plan.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace openreg::hardware {

struct Graph;

// [common.races.wanted] Unless a sanitizer is on, a command costs a load and a branch.
/// A schedule that is chosen needs the accesses and not the reports.
enum Sanitizer { kRaces = 1, kMemory = 2, kOrder = 4 };

/// The sanitizers that are on; all of them want to know the accesses.
inline constinit int sanitizers = 0;

inline int activeSanitizers() {
  return std::atomic_ref<int>(sanitizers).load(std::memory_order_relaxed);
}
inline bool racesAreWanted() { return activeSanitizers() & (kRaces | kOrder); }
inline bool racesAreReported() { return activeSanitizers() & kRaces; }
inline bool accessesAreWanted() { return activeSanitizers() != 0; }

/// From now on.
void start(Sanitizer sanitizer);
/// Called once, when the machine starts.
void endWithCodeAfterFindings();
void stopRaces();

// [common.races.pending] What a thread announces belongs to the next kernel that it enqueues.
/// Adds to that kernel. Called without a lock, because it asks for the place.
void announce(const Touch& touch);
/// Adds the bytes of a copy or memset.
void announce(const void* pointer, size_t bytes, bool is_write);
void forgetAnnounced();
/// What this thread has announced, for a kernel called `name`; null if nothing.
std::shared_ptr<const Launch> takeAnnounced(const char* name);
/// A launch of which nothing but the name and the place is known.
std::shared_ptr<const Launch> launchHere(const char* name);

// [common.races] All edges are known when a command is enqueued, so its races are, too, whenever it runs.
/// Thread-safe. Called under the lock of a queue, so it takes no such lock. All
/// threads of the host share one clock: what one of them has waited for, the
/// others know, unless it only watches. Thus work that one thread hands to
/// another is never reported.
class Races {
 public:
  /// A command that is being enqueued on `stream` of `device`.
  void add(orStream_t stream, const Device& device, Command& command);
  void wait(orStream_t stream, const Recording& recording);
  /// The launch of a graph, whose branches run on `branches`, by number; it
  /// comes after `last`, unless that is null, and `ended` completes with it.
  void replay(orStream_t stream, const Device& device, const Graph& graph,
              const std::map<size_t, orStream_t>& branches,
              const Recording* last, Recording& ended);
  void write(orStream_t stream, const void* word, uint32_t value);

  // [common.races.host] The host learns when it has waited, and not before.
  void hostWaited(orStream_t stream);
  void hostWaited(const Recording& recording);
  void hostWaited(const Device& device);
  void hostTouches(const std::shared_ptr<const Launch>& launch);

  // [common.races.next] Under a chosen order, the scheduler asks for the command that a stream has next.
  /// The next command of `stream`, which stays the next until it is taken. For
  /// the thread that takes it.
  const Planned& nextOf(orStream_t stream);
  Planned takeNext(orStream_t stream);
  Planned planHost(std::shared_ptr<const Launch> launch, const Clock& asks);
  /// Whether the host has waited for all of `asks`.
  bool hostKnows(const Clock& asks);
  /// What must have run when all commands of `stream` have.
  Clock clockOf(orStream_t stream);
  /// How many commands and steps of the host there have been.
  uint64_t planned();

  // [common.races.memory] Memory changes its owner.
  /// The bytes from `begin` to the end of the block that was handed out last.
  size_t bytesFrom(uintptr_t begin);
  void handOut(uintptr_t begin, uintptr_t end);
  void settle(uintptr_t begin, uintptr_t end, orStream_t stream);
  void giveBack(uintptr_t begin, uintptr_t end);

  /// Reports again what was reported before.
  void forgetReported();
  /// Forgets everything, at the beginning of a new search.
  void clear();

  // [common.races.state] A stream keeps its number for as long as the process lives.
 private:
  struct Stream {
    size_t number;
    const Device* device = nullptr;
    int64_t name = 0;
    Clock clock;
    std::deque<Planned> plan;
  };
  struct Word {
    Clock clock;
    std::set<uint32_t> values;
    std::vector<orStream_t> waiting;
  };

  Stream& stream(orStream_t handle);
  /// The same, for a command that the host enqueues now.
  Stream& enter(orStream_t handle, const Device& device);
  void run(Stream& stream, Clock& clock, const char* name,
           std::shared_ptr<const Launch> launch);
  void plan(Stream& stream, const Clock& clock, const char* name,
            std::shared_ptr<const Launch> launch);
  void waitForWord(orStream_t handle, Stream& stream, const void* word,
                   uint32_t value);
  void report(const Use& first, const Use& second);
  orFoundCommand commandOf(const Use& use);
  uint64_t ownerOf(uintptr_t address) const;

  // [common.races.members] The lock guards all that follows.
  std::mutex mutex_;
  std::map<orStream_t, Stream> streams_;
  std::vector<Stream*> by_number_;
  Clock host_;
  History history_;
  std::map<const void*, Word> words_;
  /// By where they begin: the end, and which time it was handed out.
  std::map<uintptr_t, std::pair<uintptr_t, uint64_t>> owners_;
  uint64_t last_owner_ = 0;
  uint64_t planned_ = 0;
  std::set<std::tuple<std::string, int64_t, std::string, int64_t, bool>> seen_;
};

Races& races();
/// Whether what the calling thread waits for is of no use to the others.
int& onlyWatches();
/// Whether the next wait of the calling thread is for another process.
bool& waitsForPeer();

// [common.races.place] The driver knows no lines of programs, so a callback tells them.
/// The number of the place at which the calling thread is; 0 if not known.
int64_t placeHere();

/// How `orSetPlaces` set it.
struct Places {
  int64_t (*here)() = nullptr;
  void (*describe)(int64_t place, char* text, size_t bytes) = nullptr;
};
void setPlaces(Places places);
/// " at train.py:12", or nothing if the place is not known.
std::string atPlace(int64_t place);
/// "stream 4 of openreg:0"; number 0 is the default stream.
std::string nameOfStream(int device, int64_t stream);
/// The number by which a report names a stream, which is the one that PyTorch
/// gives it.
int64_t numberOf(orStream_t stream, const Device& device);
/// The default stream, null before it is first used.
orStream_t defaultOf(const Device& device);

// [common.races.words-of] A report names both commands and the edge that is missing between them.
/// What is missing, and how to add it.
std::string sentenceFor(const orFinding& race);
/// The text for stderr, with the sentence.
std::string reportOf(const orFinding& race);

// [-]
}  // namespace openreg::hardware
