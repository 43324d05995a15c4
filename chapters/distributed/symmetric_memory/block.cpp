// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/symmetric_memory/block.h"

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <c10/util/Exception.h>

namespace openreg {

// [distributed.symmetric.parts] The parts of a block are at the same distance in each.
SymmetricBlock::SymmetricBlock(std::vector<void*> blocks,
                               std::vector<void*> words,
                               std::vector<std::shared_ptr<void>> owners,
                               SymmetricLayout layout, int rank,
                               c10::Device device)
    : blocks_(std::move(blocks)),
      words_(std::move(words)),
      owners_(std::move(owners)),
      layout_(layout),
      rank_(rank),
      device_(device) {
  for (void* block : blocks_) {
    pads_.push_back(static_cast<char*>(block) + layout_.size);
  }
}

/// The number that rank `sender` raises and rank `owner` waits for. It is in
/// the owner's block, so a wait reads its own memory.
void* SymmetricBlock::word(int owner, int sender, int channel) const {
  const size_t index = channel * blocks_.size() + sender;
  return static_cast<char*>(words_[owner]) + index * sizeof(uint32_t);
}

// [distributed.symmetric.check] The number of channels follows from the size of the signal pad, as for CUDA.
void SymmetricBlock::checkCall(int peer, int channel, size_t timeout_ms) const {
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
              "A signal cannot be captured in a graph, because the host counts "
              "it; send it between two graphs.");
}

// [distributed.symmetric.signal.send] The driver writes a signal when the stream gets there, and parks a stream that waits for one.
void SymmetricBlock::put_signal(int peer, int channel, size_t timeout_ms) {
  checkCall(peer, channel, timeout_ms);
  std::lock_guard lock(mutex_);
  uint32_t& sent = sent_[{peer, channel}];
  check(orStreamWriteValue32(nativeStream(currentStream(device_.index())),
                             word(peer, rank_, channel), sent + 1));
  ++sent;
}

void SymmetricBlock::wait_signal(int peer, int channel, size_t timeout_ms) {
  checkCall(peer, channel, timeout_ms);
  std::lock_guard lock(mutex_);
  uint32_t& received = received_[{peer, channel}];
  check(orStreamWaitValue32(nativeStream(currentStream(device_.index())),
                            word(rank_, peer, channel), received + 1));
  ++received;
}

void SymmetricBlock::barrier(int channel, size_t timeout_ms) {
  for (int r = 0; r < get_world_size(); ++r) {
    if (r != rank_) put_signal(r, channel, timeout_ms);
  }
  for (int r = 0; r < get_world_size(); ++r) {
    if (r != rank_) wait_signal(r, channel, timeout_ms);
  }
}

// [distributed.symmetric.pointers] Tables of pointers for kernels in Triton are refused: no such kernel runs here.
void** SymmetricBlock::get_buffer_ptrs_dev() {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "openreg has no table of addresses in device "
                              "memory; use buffer_ptrs.");
}

void** SymmetricBlock::get_signal_pad_ptrs_dev() {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "openreg has no table of addresses in device "
                              "memory; use signal_pad_ptrs.");
}

// [-]
}  // namespace openreg
