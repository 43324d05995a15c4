// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/command.h"

#include <new>

namespace openreg::hardware {

// [common.command.allocate] In the steady state a launch writes behind the one before it, and allocates nothing.
Command* CommandMemory::allocate(size_t bytes, uint64_t submitted,
                                 const std::atomic<uint64_t>& completed) {
  static_assert(Command::room(orMaxArgumentBytes) <= kChunkBytes);
  const size_t room = Command::room(bytes);
  if (room > kChunkBytes - used_) beginChunk(submitted, completed);
  return new (filled_.back().memory + used_) Command;
}

// [common.command.chunk] The last command that has run is still needed, for its `next`.
void CommandMemory::beginChunk(uint64_t submitted, uint64_t completed) {
  if (!filled_.empty()) filled_.back().last = submitted;
  while (!filled_.empty() && filled_.front().last < completed) {
    free_.splice(free_.begin(), filled_, filled_.begin());
  }
  if (free_.empty()) free_.emplace_front();
  filled_.splice(filled_.end(), free_, free_.begin());
  used_ = 0;
}

void CommandMemory::prefetch() const {
  constexpr size_t kLines = 2;
  const std::byte* const next = filled_.back().memory + used_;
  for (size_t line = 0; line < kLines; ++line) {
    __builtin_prefetch(next + line * kCacheLine, 1);
  }
}

// [common.command.make-node] A node is allocated by itself, because graphs go away in any order.
NodeCommand makeNode(size_t bytes) {
  void* memory =
      ::operator new(Command::room(bytes), std::align_val_t(alignof(Command)));
  return NodeCommand(new (memory) Command);
}

void DestroyNode::operator()(Command* command) const {
  if (command->kernel) command->kernel->destroy(command->arguments());
  command->~Command();
  ::operator delete(command, std::align_val_t(alignof(Command)));
}

// [-]
}  // namespace openreg::hardware
