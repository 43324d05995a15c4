// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/guards/guards.h"

#include "torch_openreg/common/openreg/core/machine.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace openreg::hardware {
// [common.guards.canary] A canary is a byte that no text, no zero and no small number looks like.
constexpr unsigned char kCanary = 0xCA;

static bool setRights(Range pages, ptrdiff_t window, int rights) {
  return pages.size() == 0 ||
         mprotect(reinterpret_cast<void*>(pages.begin + window), pages.size(),
                  rights) == 0;
}

static Range bytesOf(const std::pair<const uintptr_t, GuardedBlock>& block) {
  return {block.first, block.first + block.second.size};
}

// [common.guards.open] Blocks never share a page, so opening one opens nothing else.
Guards::Guards(Memory& memory, int device_count)
    : memory_(memory), retired_(device_count) {
  const uintptr_t begin = memory.begin() + memory.window();
  watchFaults({begin, begin + memory.size()});
}

bool Guards::open(uintptr_t begin, size_t size, int device) noexcept try {
  const int64_t here = placeHere();
  std::lock_guard lock(mutex_);
  std::set<uintptr_t> in_use{begin};  // What may fail comes first.
  const auto block =
      blocks_.insert_or_assign(begin, GuardedBlock{size, device, here}).first;
  const Range pages = pagesOf({begin, begin + size});
  if (!setRights(pages, memory_.window(), PROT_READ | PROT_WRITE)) {
    blocks_.erase(block);
    return false;
  }
  in_use_.merge(in_use);
  fillCanaries(block);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Guards::fillCanaries(Blocks::iterator block) {
  const Range bytes = bytesOf(*block), pages = pagesOf(bytes);
  const auto fill = [this](uintptr_t begin, uintptr_t end) {
    std::memset(reinterpret_cast<void*>(begin + memory_.window()), kCanary,
                end - begin);
  };
  fill(pages.begin, bytes.begin);
  fill(bytes.end, pages.end);
}

// [common.guards.damage] Of the canaries that were overwritten, the one that is nearest to the block is reported.
std::optional<Guards::Damage> Guards::damageOf(Blocks::iterator block) {
  const Range bytes = bytesOf(*block), pages = pagesOf(bytes);
  const auto at = [this](uintptr_t address) {
    return reinterpret_cast<const unsigned char*>(address + memory_.window());
  };
  const auto is_damaged = [](unsigned char byte) { return byte != kCanary; };
  const auto* after = at(bytes.end);
  const auto* found = std::find_if(after, at(pages.end), is_damaged);
  if (found != at(pages.end)) return Damage{block, bytes.end + (found - after)};
  const auto before = std::make_reverse_iterator(at(bytes.begin));
  const auto first = std::make_reverse_iterator(at(pages.begin));
  const auto last = std::find_if(before, first, is_damaged);
  if (last == first) return std::nullopt;
  return Damage{block, bytes.begin - 1 - (last - before)};
}

// [common.guards.retire] A freed block gives back its memory at once, and its addresses as late as possible.
void Guards::noteFree(uintptr_t begin) {
  const int64_t here = placeHere();
  std::lock_guard lock(mutex_);
  blocks_.at(begin).freed_at = here;
}

void Guards::retire(uintptr_t begin) noexcept try {
  std::unique_lock lock(mutex_);
  const auto block = blocks_.find(begin);
  if (block == blocks_.end()) return;
  const int device = block->second.device;
  const auto damage = damageOf(block);
  const Range pages = pagesOf(bytesOf(*block));
  setRights(pages, memory_.window(), PROT_NONE);
  memory_.releasePages(pages.begin, pages.size());
  orFinding found{};
  std::string sentence;
  try {
    if (damage) sentence = sentenceAtFree(found = atFree(*damage));
  } catch (const std::bad_alloc&) {
  }
  append(retired_[device], block);
  const bool is_full = retired_[device].blocks > kMostRetired;
  lock.unlock();
  if (is_full) recycleOldest(device);
  if (!damage) return;
  const char* const reason =
      sentence.empty() ? "Something wrote outside of a block, and the host has "
                         "no memory left to say what."
                       : sentence.c_str();
  machine().devices[device]->sticky_error.set("free", reason);
  if (!sentence.empty()) addViolation(found, sentence);
} catch (...) {
  // The list of findings lacks one, and the device has its error.
}

// [common.guards.retire.row] The damage is described while the block still counts as in use, and then the block joins the row.
orFinding Guards::atFree(const Damage& damage) const {
  orFinding found{};
  found.command.name = "free";
  found.command.device = damage.block->second.device;
  found.command.is_write = true;
  describe(found, damage.address, damage.block);
  return found;
}

void Guards::append(Retired& retired, Blocks::iterator block) {
  in_use_.erase(block->first);
  (retired.blocks++ ? blocks_.find(retired.last)->second.retired_next
                    : retired.first) = block->first;
  retired.last = block->first;
  retired.bytes +=
      memory_.device(block->second.device).reservedFor(block->second.size);
}

// [common.guards.recycle] A block is forgotten when its addresses are needed.
bool Guards::recycleOldest(int device) {
  uintptr_t begin;
  size_t size;
  {
    std::lock_guard lock(mutex_);
    Retired& retired = retired_[device];
    if (retired.blocks == 0) return false;
    begin = retired.first;
    const auto block = blocks_.find(begin);
    size = block->second.size;
    retired.first = block->second.retired_next;
    blocks_.erase(block);
    --retired.blocks;
    retired.bytes -= memory_.device(device).reservedFor(size);
  }
  if (racesAreWanted()) races().giveBack(begin, begin + size);
  memory_.device(device).free(begin);
  return true;
}

size_t Guards::retiredBytes(int device) {
  std::lock_guard lock(mutex_);
  return retired_[device].bytes;
}

// [common.guards.close] What a command has opened is closed again, except the pages of blocks in use.
void Guards::close(const std::vector<Range>& opened) {
  for (Range rest : opened) {
    rest = {rest.begin - memory_.window(), rest.end - memory_.window()};
    auto begin = in_use_.lower_bound(rest.begin);
    if (begin != in_use_.begin()) --begin;
    for (; begin != in_use_.end() && *begin < rest.end; ++begin) {
      const Range pages = pagesOf(bytesOf(*blocks_.find(*begin)));
      if (pages.end <= rest.begin) continue;
      const Range gap{rest.begin, std::max(rest.begin, pages.begin)};
      setRights(gap, memory_.window(), PROT_NONE);
      if (gap.size() > 0) memory_.releasePages(gap.begin, gap.size());
      rest.begin = std::min(rest.end, pages.end);
    }
    setRights(rest, memory_.window(), PROT_NONE);
    if (rest.size() > 0) memory_.releasePages(rest.begin, rest.size());
  }
}

// [-]
}  // namespace openreg::hardware
