// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/distributed/symmetric_memory/block.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/waiting.h"

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include <algorithm>
#include <cstring>

namespace openreg {
namespace {

// [distributed.symmetric.free] A block lives as long as its tensor, and as the object that describes it.
namespace symm = c10d::symmetric_memory;

/// Waits for this process's devices, but not for the peers: a program drops
/// symmetric memory when no rank uses it any more.
void freeBlock(void* data) {
  if (symm::is_finalizing()) return;
  const WithoutGil others_run;
  orFree(data);
}

std::shared_ptr<void> allocate(size_t bytes) {
  void* data = nullptr;
  check(orMalloc(&data, bytes));
  return {data, &freeBlock};
}

// [distributed.symmetric.rendezvous] The ranks publish a handle and a size each, and open those of all others.
struct Offer {
  orIpcMemHandle_t block, words;
  SymmetricLayout layout;
};

using Bytes = std::vector<uint8_t>;

Bytes bytesOf(const Offer& offer) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&offer);
  return {bytes, bytes + sizeof offer};
}

Offer offerOf(int rank, const Bytes& bytes, SymmetricLayout layout) {
  Offer offer{};
  TORCH_CHECK(bytes.size() == sizeof offer, "Rank ", rank,
              " has published no block of symmetric memory.");
  std::memcpy(&offer, bytes.data(), sizeof offer);
  TORCH_CHECK_VALUE(
      offer.layout.size == layout.size && offer.layout.pad == layout.pad,
      "Symmetric memory must have one size: ", layout.size, " bytes here, ",
      offer.layout.size, " bytes on rank ", rank, ".");
  return offer;
}

// [distributed.symmetric.offer.open] A handle that names a smaller block would let a kernel write past it.
void closeBlock(void* data) {
  if (symm::is_finalizing()) return;
  const WithoutGil others_run;
  orIpcCloseMemHandle(data);
}

std::shared_ptr<void> openOffered(int rank, const orIpcMemHandle_t& handle,
                                  size_t bytes) {
  void* data = nullptr;
  check(orIpcOpenMemHandle(&data, handle));
  std::shared_ptr<void> opened(data, &closeBlock);
  orPointerAttributes block;
  check(orPointerGetAttributes(&block, data));
  TORCH_CHECK_VALUE(block.size == bytes, "Rank ", rank, " has published ",
                    block.size, " bytes of memory where ", bytes,
                    " are to be shared.");
  return opened;
}

// [distributed.symmetric.clear] An allocation must not wait for what the default stream waits for, nor keep Python from ending it.
void clear(void* data, size_t bytes) {
  const WithoutGil others_run;
  orStream_t stream;
  check(orStreamCreate(&stream));
  orError_t error = orMemsetAsync(data, 0, bytes, stream);
  if (!error) error = orStreamSynchronize(stream);
  orStreamDestroy(stream);
  check(error);
}

// [distributed.symmetric.allocate] A block comes from the driver, because another process opens whole blocks.
class SymmetricAllocator final : public symm::SymmetricMemoryAllocator {
 public:
  void* alloc(size_t size, int device,
              const std::optional<std::string>& group) override {
    const SymmetricLayout layout{(size + 511) / 512 * 512,
                                 symm::get_signal_pad_size()};
    const DeviceScope scope(static_cast<c10::DeviceIndex>(device));
    std::shared_ptr<void> owner = allocate(layout.total());
    void* data = owner.get();
    clear(static_cast<char*>(data) + layout.size, layout.pad);
    std::lock_guard lock(mutex_);
    blocks_[data] = {std::move(owner), layout, currentDevice(), group, {}};
    return data;
  }

  void free(void* data) override {
    std::unique_lock lock(mutex_);
    const auto block = blocks_.extract(data);
    lock.unlock();
  }

  // [distributed.symmetric.state] PyTorch names a block by the address of its first byte.
  size_t get_alloc_size(void* data) override {
    return blockAt(data).layout.size;
  }
  bool has_allocation(void* data) override {
    std::lock_guard lock(mutex_);
    return blocks_.count(data) != 0;
  }
  bool has_multicast_support(int) override { return false; }
  c10::DeviceType supported_device_type() override { return kDeviceType; }
  std::string name() override { return "ORCCL"; }

  c10::intrusive_ptr<symm::SymmetricMemory> rendezvous(
      void* data, const std::optional<std::string>& group) override;

  // [distributed.symmetric.blocks] A block has an entry for each group that has shared it.
 private:
  struct Shared {
    c10::weak_intrusive_ptr<c10d::ProcessGroup> group;
    c10::intrusive_ptr<SymmetricBlock> blocks;
  };
  struct Block {
    std::shared_ptr<void> owner;
    SymmetricLayout layout;
    c10::DeviceIndex device;
    std::optional<std::string> group;
    /// By the name of the group. Another group may have the name later.
    std::map<std::string, Shared> shared;
  };
  static c10::intrusive_ptr<SymmetricBlock> open(
      const Block& block, const std::shared_ptr<void>& own_words,
      const std::vector<Offer>& offers, int rank);
  /// @throws c10::ValueError if the memory is not symmetric.
  Block blockAt(void* data) {
    std::lock_guard lock(mutex_);
    const auto block = blocks_.find(data);
    TORCH_CHECK_VALUE(block != blocks_.end(),
                      "This memory is not symmetric: allocate the tensor with "
                      "torch.distributed._symmetric_memory.empty.");
    return block->second;
  }

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

// [distributed.symmetric.group] A tensor may be in several groups, so a group is found by its name at every call.
c10::intrusive_ptr<c10d::ProcessGroup> groupNamed(const std::string& name) {
  try {
    return c10d::resolve_process_group(name);
  } catch (const c10::Error&) {
    TORCH_CHECK_VALUE(false, "There is no process group with the name ", name,
                      "; pass a group, or its group_name.");
  }
}

// [distributed.symmetric.exchange] What a rank writes to the store under a name, every rank reads.
std::vector<Bytes> exchange(c10d::ProcessGroup& ranks, const std::string& name,
                            const Bytes& own) {
  const auto store = ranks.getStore();
  const auto key = [&](int rank) { return c10::str(name, "/", rank); };
  store->set(key(ranks.getRank()), own);
  std::vector<Bytes> all;
  for (int r = 0; r < ranks.getSize(); ++r) all.push_back(store->get(key(r)));
  return all;
}

// [distributed.symmetric.open] Every rank opens the blocks of all others, and keeps them open as long as it has the object.
c10::intrusive_ptr<symm::SymmetricMemory> SymmetricAllocator::rendezvous(
    void* data, const std::optional<std::string>& group) {
  const Block block = blockAt(data);
  const std::string name = group ? *group : block.group.value_or("0");
  const auto ranks = groupNamed(name);
  const auto found = block.shared.find(name);
  if (found != block.shared.end() &&
      found->second.group.lock().get() == ranks.get()) {
    return found->second.blocks;
  }
  const WithoutGil others_run;
  const DeviceScope scope(block.device);
  const auto own_words = allocate(block.layout.pad);
  check(orMemset(own_words.get(), 0, block.layout.pad));
  Offer ours{{}, {}, block.layout};
  check(orIpcGetMemHandle(&ours.block, data));
  check(orIpcGetMemHandle(&ours.words, own_words.get()));
  // What fails before this line may be tried again with the same number. The
  // store counts, because a later group may have the name of an earlier one.
  const std::string count = c10::str("orccl/symmetric/of/", ranks->getRank());
  const std::string key =
      c10::str("orccl/symmetric/", ranks->getStore()->add(count, 1));
  std::vector<Offer> offers;
  for (const Bytes& bytes : exchange(*ranks, key, bytesOf(ours))) {
    offers.push_back(offerOf(offers.size(), bytes, block.layout));
  }
  const auto shared = open(block, own_words, offers, ranks->getRank());
  // A rank that returns may free its block at once, so all must have opened it.
  exchange(*ranks, key + "/opened", {1});
  const std::lock_guard lock(mutex_);
  const auto entry = blocks_.find(data);
  if (entry != blocks_.end()) {
    entry->second.shared.insert_or_assign(
        name,
        Shared{c10::weak_intrusive_ptr<c10d::ProcessGroup>(ranks), shared});
  }
  return shared;
}

// [distributed.symmetric.addresses] This process maps the blocks of its peers, and has its own already.
c10::intrusive_ptr<SymmetricBlock> SymmetricAllocator::open(
    const Block& block, const std::shared_ptr<void>& own_words,
    const std::vector<Offer>& offers, int rank) {
  std::vector<void*> blocks, words;
  std::vector<std::shared_ptr<void>> owners;
  const auto add = [&](std::vector<void*>& to, std::shared_ptr<void> owner) {
    to.push_back(owner.get());
    owners.push_back(std::move(owner));
  };
  for (int r = 0; r < static_cast<int>(offers.size()); ++r) {
    const Offer& offer = offers[r];
    add(blocks, r == rank ? block.owner
                          : openOffered(r, offer.block, block.layout.total()));
    add(words,
        r == rank ? own_words : openOffered(r, offer.words, block.layout.pad));
  }
  return c10::make_intrusive<SymmetricBlock>(
      std::move(blocks), std::move(words), std::move(owners), block.layout,
      rank, c10::Device(kDeviceType, block.device));
}

// [distributed.symmetric.register] PyTorch looks an allocator up by the type of its device, and `set_backend` by its name.
[[maybe_unused]] const bool registered = [] {
  const auto allocator = c10::make_intrusive<SymmetricAllocator>();
  symm::register_allocator(kDeviceType, allocator);
  symm::register_availability(allocator->name(), allocator);
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
