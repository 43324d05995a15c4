// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/guards/violation.h"

#include "torch_openreg/common/openreg/races/findings.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <sstream>

namespace openreg::hardware {
// [common.guards.sentence] A distance of 0 is the first byte that is not the block's.
/// "0 bytes past the end of the block of 400 bytes at 0x...".
static std::string whereOf(const orFinding& found) {
  std::ostringstream text;
  const ptrdiff_t offset = static_cast<const char*>(found.command.pointer) -
                           static_cast<const char*>(found.block);
  const auto size = static_cast<ptrdiff_t>(found.block_bytes);
  const auto count = [&](ptrdiff_t bytes) -> std::ostream& {
    return text << bytes << (bytes == 1 ? " byte " : " bytes ");
  };
  if (offset < 0) {
    count(-offset) << "before the beginning";
  } else if (offset >= size) {
    count(offset - size) << "past the end";
  } else {
    text << "byte " << offset;
  }
  text << " of the " << (found.was_freed ? "freed " : "") << "block of "
       << found.block_bytes << " bytes at " << found.block;
  return text.str();
}

static std::string originOf(const orFinding& found) {
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
std::string sentenceFor(const orFinding& found, bool is_certain) {
  std::ostringstream text;
  const orFoundCommand& command = found.command;
  text << "on " << nameOfStream(command.device, command.stream)
       << atPlace(command.place)
       << (command.is_write ? " it wrote " : " it read ");
  if (found.block) {
    text << whereOf(found) << originOf(found);
  } else {
    text << command.pointer << ", which is in no block.";
  }
  if (!is_certain) {
    text << " Other commands ran at the same time, and one of them may have "
            "done it.";
  }
  return text.str();
}

std::string sentenceAtFree(const orFinding& found) {
  return "something wrote " + whereOf(found) + originOf(found) +
         " It was no command that announced the block.";
}

void addViolation(orFinding found, const std::string& sentence) {
  found.sentence = sentence.c_str();
  findings().add(found, std::string("openreg: memory violation in ") +
                            found.command.name + "\n  " + sentence + "\n");
}

// [-]
}  // namespace openreg::hardware
