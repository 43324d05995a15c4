// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg {

// [distributed.symmetric.block] Every rank of a group has a block of one size, and addresses for those of all others.
/// A block has two parts: the `size` bytes of the tensor, and PyTorch's *signal
/// pad*, which belongs to the programs that use it and begins as zeros. The
/// numbers for which a group waits are in a block of their own, as large as the
/// pad, because a tensor may be in several groups.
struct SymmetricLayout {
  size_t size;  ///< bytes of the tensor
  size_t pad;   ///< bytes of the signal pad
  /// Bytes of the whole block.
  size_t total() const { return size + pad; }
};

/// What one rank knows about the blocks of its group. It keeps all of them
/// alive.
class SymmetricBlock final : public c10d::symmetric_memory::SymmetricMemory {
 public:
  /// `blocks[r]` is the block of rank r as this process sees it, `words[r]`
  /// that of its numbers, and `owners` keep all of them.
  SymmetricBlock(std::vector<void*> blocks, std::vector<void*> words,
                 std::vector<std::shared_ptr<void>> owners,
                 SymmetricLayout layout, int rank, c10::Device device);

  std::vector<void*> get_buffer_ptrs() override { return blocks_; }
  std::vector<void*> get_signal_pad_ptrs() override { return pads_; }
  void** get_buffer_ptrs_dev() override;
  void** get_signal_pad_ptrs_dev() override;
  size_t get_buffer_size() override { return layout_.size; }
  size_t get_offset() override { return 0; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  int get_rank() override { return rank_; }
  int get_world_size() override { return static_cast<int>(blocks_.size()); }
  c10::Device get_device() override { return device_; }
  bool world_within_direct_access() override { return true; }

  // [distributed.symmetric.signal] A signal is a number that only grows, so it needs no reset.
  /// Enqueued on the current stream, as the two below. Unlike PyTorch's own,
  /// which waits until the signal before it was received, it never waits:
  /// signals are counted.
  /// @throws c10::ValueError if there is no such channel,
  /// c10::NotImplementedError for a time limit.
  void put_signal(int peer, int channel, size_t timeout_ms) override;
  void wait_signal(int peer, int channel, size_t timeout_ms) override;
  /// A signal to every peer, and then one from every peer.
  void barrier(int channel, size_t timeout_ms) override;

 private:
  void* word(int owner, int sender, int channel) const;
  void checkCall(int peer, int channel, size_t timeout_ms) const;

  const std::vector<void*> blocks_, words_;
  const std::vector<std::shared_ptr<void>> owners_;
  std::vector<void*> pads_;
  const SymmetricLayout layout_;
  const int rank_;
  const c10::Device device_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, uint32_t> sent_, received_;
};

// [-]
}  // namespace openreg
