// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/races/races.h"

#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/races/findings.h"
#include "torch_openreg/common/openreg/graphs/graph.h"
#include "torch_openreg/common/openreg/signals/watcher.h"

#include <algorithm>
#include <iterator>

namespace openreg::hardware {

// [common.races.pending.take] The place is asked for once for each kernel, at its first access.
static thread_local std::shared_ptr<Launch> announced;

void announce(const Touch& touch) {
  if (touch.bytes.isEmpty()) return;
  if (!announced) {
    announced = std::make_shared<Launch>();
    announced->place = placeHere();
  }
  announced->touches.push_back(touch);
}

void announce(const void* pointer, size_t bytes, bool is_write) {
  const orAccess access{pointer, bytes, 0, nullptr, nullptr, is_write};
  announce({Footprint(access), is_write});
}

void forgetAnnounced() { announced.reset(); }

std::shared_ptr<const Launch> takeAnnounced(const char* name) {
  if (announced) announced->name = name;
  return std::move(announced);
}

std::shared_ptr<const Launch> launchHere(const char* name) {
  return std::make_shared<Launch>(Launch{name, placeHere(), {}});
}

Races& races() {
  static Races& races = *new Races;
  return races;
}

// [common.races.stream] Number 0 is the host, so streams count from 1.
Races::Stream& Races::stream(orStream_t handle) {
  auto [found, is_new] = streams_.try_emplace(handle);
  if (is_new) {
    if (by_number_.empty()) by_number_.push_back(nullptr);
    found->second.number = by_number_.size();
    by_number_.push_back(&found->second);
  }
  return found->second;
}

Races::Stream& Races::enter(orStream_t handle, const Device& device) {
  Stream& stream = this->stream(handle);
  stream.device = &device;
  stream.name = reinterpret_cast<int64_t>(handle);
  stream.clock.join(host_);
  return stream;
}

// [common.races.add] Each kind of command has an edge of its own.
void Races::add(orStream_t handle, const Device& device, Command& command) {
  std::lock_guard lock(mutex_);
  Stream& stream = enter(handle, device);
  switch (command.kind) {
    case Command::Kind::kernel:
      run(stream, stream.clock, command.name, command.launch);
      break;
    case Command::Kind::record:
      command.recording->clock = stream.clock;
      break;
    case Command::Kind::wait:
      stream.clock.join(command.recording->clock);
      break;
    case Command::Kind::wait_value: {
      const auto& wait = static_cast<const NumberWait&>(*command.recording);
      waitForWord(handle, stream, wait.word, wait.value);
      break;
    }
    case Command::Kind::graph:
    case Command::Kind::branch:
      break;
  }
}

void Races::wait(orStream_t handle, const Recording& recording) {
  std::lock_guard lock(mutex_);
  stream(handle).clock.join(recording.clock);
}

// [common.races.run] A kernel ticks the clock of its stream, and each of its accesses is compared with those before.
void Races::run(Stream& stream, Clock& clock, const char* name,
                std::shared_ptr<const Launch> launch) {
  if (!launch && !config().ordered) return;
  const uint64_t tick = clock.tick(stream.number);
  if (config().ordered) plan(stream, clock, name, launch);
  if (!launch) return;
  for (size_t i = 0; i < launch->touches.size(); ++i) {
    const Use use{launch,
                  i,
                  stream.number,
                  tick,
                  ownerOf(launch->touches[i].bytes.begin),
                  clock.is_uncertain};
    for (const Use& first : history_.add(use, clock)) report(first, use);
  }
}

// [common.races.replay] The nodes of a graph have clocks along its edges; between them there is no other order.
void Races::replay(orStream_t handle, const Device& device, const Graph& graph,
                   const std::map<size_t, orStream_t>& branches,
                   const Recording* last, Recording& ended) {
  std::lock_guard lock(mutex_);
  Stream& origin = enter(handle, device);
  if (last) origin.clock.join(last->clock);
  std::vector<std::pair<Stream*, Clock>> clocks;
  for (size_t branch = 0; branch < graph.branches.size(); ++branch) {
    const auto own = branches.find(branch);
    Stream& each = own == branches.end() ? origin : stream(own->second);
    each.device = &device;
    if (&each != &origin)
      each.name = reinterpret_cast<int64_t>(graph.branches[branch].stream);
    Clock begin = each.clock;
    begin.join(origin.clock);
    clocks.emplace_back(&each, std::move(begin));
  }
  std::map<size_t, Clock> at_points;
  const auto join = [&](Clock& clock, const std::vector<size_t>& nodes) {
    for (size_t node : nodes) {
      if (graph.nodes[node].point) clock.join(at_points[node]);
    }
  };
  for (size_t number = 0; number < graph.nodes.size(); ++number) {
    const Node& node = graph.nodes[number];
    auto& [each, clock] = clocks[node.branch];
    join(clock, node.after);
    run(*each, clock, node.command->name, node.command->launch);
    if (node.point) at_points[number] = clock;
  }
  for (size_t branch = 1; branch < clocks.size(); ++branch) {
    clocks[branch].first->clock = clocks[branch].second;
  }
  join(clocks[0].second, graph.last);
  origin.clock = std::move(clocks[0].second);
  ended.clock = origin.clock;
}

// [common.races.words] A number in memory orders streams if a stream of this process writes it; another writer is not known.
void Races::write(orStream_t handle, const void* word, uint32_t value) {
  std::lock_guard lock(mutex_);
  const Clock& clock = stream(handle).clock;
  Word& each = words_[word];
  each.clock.join(clock);
  each.values.insert(value);
  for (orStream_t waiting : std::exchange(each.waiting, {})) {
    Clock& its_clock = stream(waiting).clock;
    its_clock.is_uncertain = false;
    its_clock.join(clock);
  }
}

bool& waitsForPeer() {
  thread_local bool own = false;
  return own;
}

void Races::waitForWord(orStream_t handle, Stream& stream, const void* word,
                        uint32_t value) {
  if (std::exchange(waitsForPeer(), false)) return;
  Word& each = words_[word];
  // A write counts for one wait: the next may be for another round.
  const auto written = each.values.lower_bound(value);
  if (written != each.values.end()) {
    each.values.erase(written);
    stream.clock.join(each.clock);
    return;
  }
  each.waiting.push_back(handle);
  stream.clock.is_uncertain = true;
}

// [common.races.host.waited] Work that the host has waited for comes before whatever it enqueues next, on any stream.
int& onlyWatches() {
  thread_local int depth = 0;
  return depth;
}

/// In a chosen order, every question is a step of the host.
static bool isCounted() { return !onlyWatches() || config().ordered; }

void Races::hostWaited(orStream_t handle) {
  if (!isCounted()) return;
  std::lock_guard lock(mutex_);
  Stream& each = stream(handle);
  each.clock.is_uncertain = false;
  host_.join(each.clock);
}

void Races::hostWaited(const Recording& recording) {
  if (!isCounted()) return;
  std::lock_guard lock(mutex_);
  host_.join(recording.clock);
  host_.is_uncertain = false;
}

void Races::hostWaited(const Device& device) {
  if (!isCounted()) return;
  std::lock_guard lock(mutex_);
  for (auto& [handle, each] : streams_) {
    if (each.device != &device) continue;
    each.clock.is_uncertain = false;
    host_.join(each.clock);
  }
}

// [common.races.host.touches] The host's own access is one more to compare with those before.
/// What the host does is over when it enqueues something, so it is compared
/// with what came before, and need not be kept.
void Races::hostTouches(const std::shared_ptr<const Launch>& launch) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < launch->touches.size(); ++i) {
    const Use use{launch, i, 0, 0, ownerOf(launch->touches[i].bytes.begin)};
    for (const Use& first : history_.find(use.what(), host_)) {
      report(first, use);
    }
  }
}

// [common.races.owner] Memory that is handed out again keeps its history: its next owner may still race with the last one.
void Races::handOut(uintptr_t begin, uintptr_t end) {
  std::lock_guard lock(mutex_);
  auto first = owners_.upper_bound(begin);
  if (first != owners_.begin() && std::prev(first)->second.first > begin)
    --first;
  owners_.erase(first, owners_.lower_bound(end));
  owners_[begin] = {end, ++last_owner_};
}

uint64_t Races::ownerOf(uintptr_t address) const {
  auto after = owners_.upper_bound(address);
  if (after == owners_.begin()) return 0;
  const auto& [end, number] = std::prev(after)->second;
  return address < end ? number : 0;
}

size_t Races::bytesFrom(uintptr_t begin) {
  std::lock_guard lock(mutex_);
  auto after = owners_.upper_bound(begin);
  if (after != owners_.begin() && begin < std::prev(after)->second.first)
    return std::prev(after)->second.first - begin;
  const orPointerAttributes where =
      machine().memory.attributes(reinterpret_cast<const void*>(begin));
  const auto block = reinterpret_cast<uintptr_t>(where.pointer);
  return where.type == orMemoryTypeUnmanaged ? 0 : block + where.size - begin;
}

void Races::settle(uintptr_t begin, uintptr_t end, orStream_t handle) {
  std::lock_guard lock(mutex_);
  history_.settle(begin, end, stream(handle).clock);
}

void Races::giveBack(uintptr_t begin, uintptr_t end) {
  std::lock_guard lock(mutex_);
  history_.forget(begin, end);
}

// [common.races.report] A race is reported once for two places of the program.
orFoundCommand Races::commandOf(const Use& use) {
  const Stream* its = use.stream ? by_number_[use.stream] : nullptr;
  const Footprint& bytes = use.what().bytes;
  const Device* device = its ? its->device : nullptr;
  const auto handle = reinterpret_cast<orStream_t>(its ? its->name : 0);
  return {use.launch->name.c_str(),
          device ? device->index : -1,
          device ? numberOf(handle, *device) : 0,
          use.what().is_write,
          reinterpret_cast<const void*>(bytes.begin),
          bytes.end - bytes.begin,
          use.launch->place};
}

void Races::report(const Use& first, const Use& second) {
  if (!racesAreReported()) return;
  const bool was_reused = first.owner != second.owner && second.owner != 0;
  if (!seen_
           .insert({first.launch->name, first.launch->place,
                    second.launch->name, second.launch->place, was_reused})
           .second) {
    return;
  }
  orFinding race{};
  race.is_race = true;
  race.command = commandOf(second);
  race.other = commandOf(first);
  race.was_freed = was_reused;
  const orPointerAttributes where = machine().memory.attributes(
      std::max(race.command.pointer, race.other.pointer));
  race.block = where.pointer;
  race.block_bytes = where.size;
  const std::string sentence = sentenceFor(race);
  race.sentence = sentence.c_str();
  findings().add(race, reportOf(race));
}

// [common.races.forget] What a program has cleared may be reported again.
void Races::forgetReported() {
  std::lock_guard lock(mutex_);
  seen_.clear();
}

void Races::clear() {
  std::lock_guard lock(mutex_);
  history_.clear();
  owners_.clear();
  words_.clear();
}

// [-]
}  // namespace openreg::hardware
