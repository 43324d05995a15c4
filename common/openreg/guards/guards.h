// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/guards/faults.h"
#include "torch_openreg/common/openreg/guards/violation.h"
#include "torch_openreg/common/openreg/memory/memory.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace openreg::hardware {

struct Command;
class Device;

// [common.guards.block] A block stays known after it was freed, until its addresses are needed again.
struct GuardedBlock {
  size_t size = 0;
  int device = 0;
  /// Where the program allocated and freed it; 0 if not known.
  int64_t allocated_at = 0, freed_at = 0;
  uintptr_t retired_next = 0;  ///< the block that was retired after it
};

// [common.guards] Device code reaches the pages of blocks in use, and no others.
/// The guards around the blocks of all devices. Thread-safe. It takes no lock
/// of another class but that of the findings.
class Guards {
 public:
  Guards(Memory& memory, int device_count);

  /// Opens the pages of a new block, and fills what is not the block's with
  /// canaries; false if the system has no mapping left, or no memory.
  bool open(uintptr_t begin, size_t size, int device) noexcept;
  /// The program frees a block now; its pages stay open until `retire`.
  void noteFree(uintptr_t begin);
  /// Closes the pages of a block that nothing uses any more.
  void retire(uintptr_t begin) noexcept;
  /// Forgets the block of a device that was retired first, so that its
  /// addresses can be used again; false if there is none.
  bool recycleOldest(int device);
  /// The addresses of retired blocks, which are free for a program that asks.
  size_t retiredBytes(int device);

  // [common.guards.run] A command is judged when it has ended on all of its threads.
  /// Runs the kernel of `command`, which `stream` of `device` has reached.
  /// @throws std::runtime_error if it touched what is not in a block.
  void run(Command& command, const Device& device, orStream_t stream);

 private:
  using Blocks = std::map<uintptr_t, GuardedBlock>;
  struct Damage {
    Blocks::iterator block;
    uintptr_t address;
  };
  /// Blocks of a device, each of which names the next one, so that retiring
  /// one needs no memory of the host.
  struct Retired {
    uintptr_t first = 0, last = 0;
    size_t blocks = 0, bytes = 0;
  };

  Blocks::iterator ownerOf(uintptr_t address);
  std::optional<Damage> damageOf(Blocks::iterator block);
  std::optional<Damage> damageBy(const Command& command);
  void fillCanaries(Blocks::iterator block);
  void close(const std::vector<Range>& pages);
  std::optional<orFinding> judge(const std::optional<PageFault>& fault,
                                 const Command& command);
  void describe(orFinding& found, uintptr_t address,
                Blocks::iterator block) const;
  orFinding atFree(const Damage& damage) const;
  void append(Retired& retired, Blocks::iterator block);

  // [common.guards.state] Freed blocks wait in a row, for each device.
  Memory& memory_;
  std::mutex mutex_;
  Blocks blocks_;
  /// Where those begin that are in use.
  std::set<uintptr_t> in_use_;
  std::vector<Retired> retired_;
  /// How many commands run, and how many have begun.
  std::atomic<int> running_{0};
  std::atomic<uint64_t> begun_{0};
};

/// The most blocks of a device that stay known after they were freed.
inline constexpr size_t kMostRetired = size_t{1} << 16;

// [-]
}  // namespace openreg::hardware
