// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>

#include <map>
#include <memory>
#include <mutex>
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
                 SymmetricLayout layout, int rank, c10::Device device)
      : blocks_(std::move(blocks)),
        words_(std::move(words)),
        owners_(std::move(owners)),
        layout_(layout),
        rank_(rank),
        device_(device) {}

  // [distributed.symmetric.parts] The parts of a block are at the same distance in each.
  std::vector<void*> get_buffer_ptrs() override { return blocks_; }
  std::vector<void*> get_signal_pad_ptrs() override {
    std::vector<void*> pads;
    for (void* block : blocks_) {
      pads.push_back(static_cast<char*>(block) + layout_.size);
    }
    return pads;
  }
  size_t get_buffer_size() override { return layout_.size; }
  size_t get_offset() override { return 0; }
  bool has_multicast_support() override { return false; }
  void* get_multicast_ptr() override { return nullptr; }
  int get_rank() override { return rank_; }
  int get_world_size() override { return static_cast<int>(blocks_.size()); }
  c10::Device get_device() override { return device_; }
  bool world_within_direct_access() override { return true; }

  // [distributed.symmetric.pointers] Tables of pointers for kernels in Triton are refused: no such kernel runs here.
  void** get_buffer_ptrs_dev() override {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "openreg has no table of addresses in device "
                                "memory; use buffer_ptrs.");
  }
  void** get_signal_pad_ptrs_dev() override {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "openreg has no table of addresses in device "
                                "memory; use signal_pad_ptrs.");
  }

  // [distributed.symmetric.signal] A signal is a number that only grows, so it needs no reset; the driver writes it when the stream gets there, and parks a stream that waits for one.
  /// Enqueued on the current stream, as the two below. Unlike PyTorch's own,
  /// which waits until the signal before it was received, it never waits:
  /// signals are counted.
  /// @throws c10::ValueError if there is no such channel,
  /// c10::NotImplementedError for a time limit.
  void put_signal(int peer, int channel, size_t timeout_ms) override {
    checkCall(peer, channel, timeout_ms);
    const WithoutGil others_run;  // A full queue makes the host wait.
    std::lock_guard lock(sending_);
    uint32_t& sent = sent_[{peer, channel}];
    check(orStreamWriteValue32(currentNativeStream(device_.index()),
                               word(peer, rank_, channel), sent + 1));
    ++sent;
  }
  void wait_signal(int peer, int channel, size_t timeout_ms) override {
    checkCall(peer, channel, timeout_ms);
    const WithoutGil others_run;
    std::lock_guard lock(receiving_);
    uint32_t& received = received_[{peer, channel}];
    check(orStreamWaitValue32(currentNativeStream(device_.index()),
                              word(rank_, peer, channel), received + 1));
    ++received;
  }
  /// A signal to every peer, and then one from every peer.
  void barrier(int channel, size_t timeout_ms) override {
    for (int r = 0; r < get_world_size(); ++r) {
      if (r != rank_) put_signal(r, channel, timeout_ms);
    }
    for (int r = 0; r < get_world_size(); ++r) {
      if (r != rank_) wait_signal(r, channel, timeout_ms);
    }
  }

  // [distributed.symmetric.check] The number of channels follows from the size of the signal pad, as for CUDA.
 private:
  void checkCall(int peer, int channel, size_t timeout_ms) const {
    const size_t channels = layout_.pad / sizeof(uint32_t) / blocks_.size();
    TORCH_CHECK_VALUE(channel >= 0 && static_cast<size_t>(channel) < channels,
                      "There is no channel ", channel,
                      " in this symmetric memory; its signal pad has room for ",
                      channels, ". See set_signal_pad_size.");
    TORCH_CHECK_VALUE(peer >= 0 && peer < static_cast<int>(blocks_.size()),
                      "There is no rank ", peer, " in a group of ",
                      blocks_.size(), ".");
    TORCH_CHECK_NOT_IMPLEMENTED(
        timeout_ms == 0,
        "Streams of openreg wait for signals without a time limit; timeout_ms "
        "must be 0.");
    TORCH_CHECK(!isCaptured(currentStream(device_.index())),
                "A signal cannot be captured in a graph, because the host "
                "counts it; send it between two graphs.");
  }

  /// The number that rank `sender` raises and rank `owner` waits for. It is in
  /// the owner's block, so a wait reads its own memory.
  void* word(int owner, int sender, int channel) const {
    const size_t index = channel * blocks_.size() + sender;
    return static_cast<char*>(words_[owner]) + index * sizeof(uint32_t);
  }

  const std::vector<void*> blocks_, words_;
  const std::vector<std::shared_ptr<void>> owners_;
  const SymmetricLayout layout_;
  const int rank_;
  const c10::Device device_;
  /// A thread that waits for room in a queue does not stop one that sends.
  std::mutex sending_, receiving_;
  std::map<std::pair<int, int>, uint32_t> sent_, received_;
};

// [-]
}  // namespace openreg
