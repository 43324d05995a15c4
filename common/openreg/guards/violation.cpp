// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/guards/violation.h"

#include "torch_openreg/common/openreg/races/races.h"

#include <cstdio>
#include <sstream>
#include <utility>

namespace openreg::hardware {
// [common.guards.sentence] A distance of 0 is the first byte that is not the block's.
/// "0 bytes past the end of the block of 400 bytes at 0x...".
static std::string whereOf(const Violation& found) {
  std::ostringstream text;
  const uintptr_t end = found.block + found.block_bytes;
  const auto count = [&](uintptr_t bytes) -> std::ostream& {
    return text << bytes << (bytes == 1 ? " byte " : " bytes ");
  };
  if (found.pointer < found.block) {
    count(found.block - found.pointer) << "before the beginning";
  } else if (found.pointer >= end) {
    count(found.pointer - end) << "past the end";
  } else {
    text << "byte " << found.pointer - found.block;
  }
  text << " of the " << (found.was_freed ? "freed " : "") << "block of "
       << found.block_bytes << " bytes at "
       << reinterpret_cast<const void*>(found.block);
  return text.str();
}

static std::string originOf(const Violation& found) {
  const std::string allocated = atPlace(found.allocated_at);
  const std::string freed = found.was_freed ? atPlace(found.freed_at) : "";
  std::string text;
  if (!allocated.empty()) text += ", which was allocated" + allocated;
  if (!freed.empty()) {
    text += text.empty() ? ", which was freed" : " and freed";
    text += freed;
  }
  return text + ".";
}

// [common.guards.sentence.whole] A sentence that may blame the wrong command says so.
std::string sentenceFor(const Violation& found) {
  std::ostringstream text;
  text << "on " << nameOfStream(found.device, found.stream)
       << atPlace(found.place) << (found.is_write ? " it wrote " : " it read ");
  if (found.block) {
    text << whereOf(found) << originOf(found);
  } else {
    text << reinterpret_cast<const void*>(found.pointer)
         << ", which is in no block.";
  }
  if (!found.is_certain) {
    text << " Other commands ran at the same time, and one of them may have "
            "done it.";
  }
  return text.str();
}

std::string sentenceAtFree(const Violation& found) {
  return "something wrote " + whereOf(found) + originOf(found) +
         " It was no command that announced the block.";
}

// [common.guards.violations.add] The report is written at once, so that those of two threads do not mix.
void Violations::add(Violation violation) {
  const std::string text = "openreg: memory violation in " + violation.name +
                           "\n  " + violation.sentence + "\n";
  std::fputs(text.c_str(), stderr);
  std::lock_guard lock(mutex_);
  all_.push_back(std::move(violation));
  count_ = all_.size();
}

void Violations::visit(void (*visit)(const orViolation*, void*), void* data) {
  std::lock_guard lock(mutex_);
  for (const Violation& each : all_) {
    const orViolation violation{each.name.c_str(),
                                each.device,
                                each.stream,
                                each.is_write,
                                reinterpret_cast<const void*>(each.pointer),
                                reinterpret_cast<const void*>(each.block),
                                each.block_bytes,
                                each.was_freed,
                                each.place,
                                each.allocated_at,
                                each.freed_at,
                                each.sentence.c_str()};
    visit(&violation, data);
  }
}

void Violations::clear() {
  std::lock_guard lock(mutex_);
  all_.clear();
  count_ = 0;
}

Violations& violations() {
  static Violations& violations = *new Violations;
  return violations;
}

// [-]
}  // namespace openreg::hardware
