// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/execution/event.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/tools/observer.h"

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>

namespace openreg::hardware {

struct Launch;

// [common.command] A command is followed by its kernel's arguments, and shares no cache line with another command.
/// A cache line that host and device both write travels between their cores,
/// and each transfer takes as long as a small kernel.
inline constexpr size_t kCacheLine = 64;

struct alignas(kCacheLine) Command {
  enum class Kind { kernel, record, wait, wait_value, graph, branch };

  std::atomic<Command*> next{nullptr};
  Kind kind = Kind::kernel;
  const orKernel* kernel = nullptr;
  const char* name = nullptr;
  /// Null, or the reason for which the command must fail.
  const char* fault = nullptr;
  std::shared_ptr<Recording> recording;
  /// What the kernel touches, while races are wanted.
  std::shared_ptr<const Launch> launch;
  Traced traced;
  /// Whether the observers know that it is enqueued.
  std::atomic<bool> announced{true};

  std::byte* arguments() { return reinterpret_cast<std::byte*>(this + 1); }
  /// What a command with `bytes` of arguments takes.
  static constexpr size_t room(size_t bytes) {
    return sizeof(Command) + (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
};

// [common.command.node] A command that is recorded and not run has the arguments that it was given until the graph goes away.
struct DestroyNode {
  void operator()(Command* command) const;
};
using NodeCommand = std::unique_ptr<Command, DestroyNode>;

/// A command outside of a queue, with room for `bytes` of arguments.
NodeCommand makeNode(size_t bytes);

// [common.command.memory] The commands of a queue lie behind each other, and take the memory again that was used last.
/// A host that has run far ahead once leaves much memory behind. If all of it
/// were used in turn, no command would find its memory in a cache.
class CommandMemory {
 public:
  /// A new command with room for `bytes` of arguments, at most
  /// `orMaxArgumentBytes`. The queue has been given `submitted` commands, and
  /// `completed` of them have run. The next one takes the same place, unless
  /// this one is kept.
  Command* allocate(size_t bytes, uint64_t submitted,
                    const std::atomic<uint64_t>& completed);
  void keep(size_t bytes) { used_ += Command::room(bytes); }
  /// Brings what the next command needs to this core's cache.
  void prefetch() const;

 private:
  static constexpr size_t kChunkBytes = 8192;
  struct Chunk {
    /// The number of the last command in it.
    uint64_t last = 0;
    alignas(kCacheLine) std::byte memory[kChunkBytes];
  };
  void beginChunk(uint64_t submitted, uint64_t completed);

  /// The oldest one first; new commands go into the last one.
  std::list<Chunk> filled_;
  /// The one that was used last first.
  std::list<Chunk> free_;
  /// Bytes of the last filled chunk.
  size_t used_ = kChunkBytes;
};

// [-]
}  // namespace openreg::hardware
