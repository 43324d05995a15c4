// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/guards/guards.h"

#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/execution/device.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <cxxabi.h>

#include <exception>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace openreg::hardware {

// [common.guards.owner] The guards of a block are its own, so an address beside a block belongs to one block.
Guards::Blocks::iterator Guards::ownerOf(uintptr_t address) {
  const auto has = [&](Blocks::iterator block) {
    const Range pages =
        pagesOf({block->first, block->first + block->second.size});
    return Range{pages.begin - pageSize(), pages.end + pageSize()}.contains(
        address);
  };
  const auto after = blocks_.upper_bound(address);
  if (after != blocks_.end() && has(after)) return after;
  if (after == blocks_.begin() || !has(std::prev(after))) return blocks_.end();
  return std::prev(after);
}

// [common.guards.damage-by] Of a command that has announced its accesses, those blocks are checked, and of any other all.
std::optional<Guards::Damage> Guards::damageBy(const Command& command) {
  if (!command.launch->touches.empty()) {
    for (const Touch& touch : command.launch->touches) {
      const auto block = ownerOf(touch.bytes.begin);
      if (block == blocks_.end() || !in_use_.contains(block->first)) continue;
      if (auto damage = damageOf(block)) return damage;
    }
    return std::nullopt;
  }
  for (const uintptr_t begin : in_use_) {
    if (auto damage = damageOf(blocks_.find(begin))) return damage;
  }
  return std::nullopt;
}

// [common.guards.judge] A fault past the end of a block comes after the padding, which the same command may have overwritten.
std::optional<orFinding> Guards::judge(const std::optional<PageFault>& fault,
                                       const Command& command) {
  std::lock_guard lock(mutex_);
  orFinding found{};
  found.command.is_write = !fault || fault->is_write;
  std::optional<Damage> damage;
  if (fault) {
    close(fault->opened);
    const uintptr_t address = fault->address - memory_.window();
    const auto block = ownerOf(address);
    describe(found, address, block);
    if (found.command.is_write && found.block && !found.was_freed)
      damage = damageOf(block);
  } else if (!(damage = damageBy(command))) {
    return std::nullopt;
  }
  if (damage) {
    describe(found, damage->address, damage->block);
    fillCanaries(damage->block);
  }
  return found;
}

void Guards::describe(orFinding& found, uintptr_t address,
                      Blocks::iterator block) const {
  found.command.pointer = reinterpret_cast<const void*>(address);
  if (block == blocks_.end()) return;
  found.block = reinterpret_cast<const void*>(block->first);
  found.block_bytes = block->second.size;
  found.was_freed = !in_use_.contains(block->first);
  found.allocated_at = block->second.allocated_at;
  found.freed_at = block->second.freed_at;
}

// [common.guards.run.judged] What a command threw may follow from what it read, so the violation comes first.
void Guards::run(Command& command, const Device& device, orStream_t stream) {
  // The driver's own command, `free`, touches nothing.
  if (!command.launch) return command.kernel->run(command.arguments());
  const uint64_t number = ++begun_;
  bool is_alone = running_++ == 0;
  beginCommand();
  std::exception_ptr thrown;
  try {
    command.kernel->run(command.arguments());
  } catch (const abi::__forced_unwind&) {
    endCommand();
    --running_;
    throw;
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::optional<PageFault> fault = endCommand();
  is_alone = is_alone && begun_ == number;
  --running_;
  if (std::optional<orFinding> found = judge(fault, command)) {
    found->command.name = command.name;
    found->command.device = device.index;
    found->command.stream = numberOf(stream, device);
    found->command.place = command.launch->place;
    const std::string sentence = sentenceFor(*found, fault || is_alone);
    addViolation(*found, sentence);
    throw std::runtime_error(sentence);
  }
  if (thrown) std::rethrow_exception(thrown);
}

// [-]
}  // namespace openreg::hardware
