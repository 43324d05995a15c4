// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/cache.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/waiting.h"

#include <c10/core/Storage.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace openreg {
namespace {

// [hooks.sharing.share] The driver shares whole blocks, so a storage inside one is sent with its offset.
/// Where other processes find `storage`: the driver's handle of a block, and
/// the offset in bytes from the beginning of that block. Waits for the device,
/// so that they see all earlier writes, and makes the storage non-resizable.
/// The location is valid while both this process and the storage live.
std::pair<pybind11::bytes, size_t> shareStorage(const c10::Storage& storage) {
  orPointerAttributes block;
  orIpcMemHandle_t handle;
  {
    WithoutGil others_run;
    check(orPointerGetAttributes(&block, storage.data()));
    check(orIpcGetMemHandle(&handle, block.pointer));
    synchronizeDevice(storage.device().index());
  }
  storage.unsafeGetStorageImpl()->set_resizable(false);
  const auto* data = static_cast<const char*>(storage.data());
  return {{handle.reserved, sizeof(handle.reserved)},
          static_cast<size_t>(data - static_cast<char*>(block.pointer))};
}

// [hooks.sharing.leases] This process holds read ends as a sender and write ends as a receiver.
struct Leases {
  /// A thread that holds it neither takes the GIL nor calls the driver.
  std::mutex mutex;
  /// Storages that this process lent, by the read end that reports their
  /// return.
  std::map<int, c10::Storage> lent;
  /// The write ends that keep the storages this process borrowed.
  std::set<int> open;
};

Leases& leases() {
  static Leases& leases = *new Leases;
  return leases;
}

// [hooks.sharing.collect] Returned storages are dropped outside the lock, because dropping one may run Python.
/// Keeps `storage` until all write ends of a pipe are closed. Takes ownership
/// of the read end, the file descriptor `returned`.
void lend(c10::Storage storage, int returned) {
  std::lock_guard lock(leases().mutex);
  leases().lent.emplace(returned, std::move(storage));
}

/// Drops the lent storages whose receivers have closed them. Reentrant:
/// dropping a storage may call it again.
void collectLent() {
  std::vector<c10::Storage> back;  // Declared first, so destroyed unlocked.
  std::lock_guard lock(leases().mutex);
  std::vector<pollfd> ends;
  for (const auto& [end, storage] : leases().lent) ends.push_back({end, 0, 0});
  poll(ends.data(), ends.size(), 0);
  for (const pollfd& end : ends) {
    if (end.revents == 0) continue;
    back.push_back(std::move(leases().lent.extract(end.fd).mapped()));
    close(end.fd);
  }
}

// [hooks.sharing.opened] The receiver closes the memory before the lease, which tells the owner that it is done.
struct Opened {
  explicit Opened(int lease) : lease(lease) {
    fcntl(lease, F_SETFD, FD_CLOEXEC);
    std::lock_guard lock(leases().mutex);
    leases().open.insert(lease);
  }
  ~Opened() {
    if (block) {
      WithoutGil others_run;
      orIpcCloseMemHandle(block);
    }
    std::lock_guard lock(leases().mutex);
    // A forked child has closed it, and may have reused its number.
    if (leases().open.erase(lease)) close(lease);
  }

  void* block = nullptr;
  const int lease;
};

// [hooks.sharing.open] The deleter of this storage closes the memory instead of freeing it.
/// A storage of `bytes` bytes over the memory at a location; it cannot be
/// resized. Takes ownership of the file descriptor `lease`, which is closed
/// when the storage is freed, or if this throws.
/// @throws c10::ValueError if the process that shared it has ended.
c10::Storage openStorage(const std::string& handle, size_t offset, size_t bytes,
                         int lease) {
  auto opened = std::make_unique<Opened>(lease);
  orIpcMemHandle_t known;
  TORCH_CHECK_VALUE(handle.size() == sizeof(known.reserved),
                    "A handle of openreg's memory has ", sizeof(known.reserved),
                    " bytes; this one has ", handle.size(), ".");
  std::memcpy(known.reserved, handle.data(), sizeof(known.reserved));
  check(orIpcOpenMemHandle(&opened->block, known));
  orPointerAttributes block;
  check(orPointerGetAttributes(&block, opened->block));
  TORCH_CHECK_VALUE(offset <= block.size && bytes <= block.size - offset,
                    "The storage has ", bytes, " bytes at offset ", offset,
                    ", but the block that it is in has ", block.size, ".");
  const c10::Device device(kDeviceType,
                           static_cast<c10::DeviceIndex>(block.device));
  void* data = static_cast<char*>(opened->block) + offset;
  c10::DataPtr owner(
      data, opened.release(),
      [](void* opened) { delete static_cast<Opened*>(opened); }, device);
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(owner));
}

// [hooks.sharing.register] A full device collects what came back, and a forked child closes the leases it inherited.
[[maybe_unused]] const bool sharing_registered = [] {
  onFullDevice(collectLent);
  pthread_atfork([] { leases().mutex.lock(); }, [] { leases().mutex.unlock(); },
                 [] {
                   for (int lease : leases().open) close(lease);
                   leases().open.clear();
                   leases().mutex.unlock();
                 });
  return true;
}();

// [hooks.sharing.bindings] Python receives the driver's handle as bytes, which it can send.
const ChapterBindings sharing_bindings("hooks", [](pybind11::module_& m) {
  m.def("share_storage", &shareStorage);
  m.def("lend", &lend);
  m.def("ipc_collect", &collectLent, Waits());
  m.def("open_storage", &openStorage);
});

// [-]
}  // namespace
}  // namespace openreg
