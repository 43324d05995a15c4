// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/storage/sharing.h"
#include "chapters/device/memory/cache.h"
#include "chapters/device/runtime.h"
#include "common/error.h"
#include "common/openreg/openreg_tools.h"
#include "common/waiting.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace openreg {

// [hooks.sharing.share] The driver knows blocks; a storage may be a part of one.
IpcLocation shareStorage(const c10::Storage& storage) {
  orPointerAttributes block;
  check(orPointerGetAttributes(&block, storage.data()));
  orIpcMemHandle_t handle;
  check(orIpcGetMemHandle(&handle, block.pointer));
  synchronizeDevice(storage.device().index());
  storage.unsafeGetStorageImpl()->set_resizable(false);
  const auto* data = static_cast<const char*>(storage.data());
  return {{handle.reserved, sizeof(handle.reserved)},
          static_cast<size_t>(data - static_cast<char*>(block.pointer))};
}

// [hooks.sharing.leases] The ends of pipes that this process has, in both roles.
namespace {

struct Leases {
  /// Nobody who holds it waits for Python's lock or calls the driver.
  std::mutex mutex;
  /// What this process lent, by the end that tells when it is back.
  std::map<int, c10::Storage> lent;
  /// The ends that keep what others lent to this process.
  std::set<int> open;
};

Leases& leases() {
  static Leases& leases = *new Leases;
  return leases;
}

}  // namespace

// [hooks.sharing.collect] Of what came back, nothing is dropped under the lock: it may end in Python.
void lend(c10::Storage storage, int returned) {
  std::lock_guard lock(leases().mutex);
  leases().lent.emplace(returned, std::move(storage));
}

void collectLent() {
  std::vector<c10::Storage> back;  // First, so dropped last: after the lock.
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

// [hooks.sharing.opened] First the memory is closed, then its owner is told.
namespace {

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
    // In a forked child it is closed, and its number may be another file's.
    if (leases().open.erase(lease)) close(lease);
  }

  void* block = nullptr;
  const int lease;
};

}  // namespace

// [hooks.sharing.open] A storage over memory that its deleter does not free, but closes.
c10::Storage openStorage(const IpcLocation& where, size_t bytes, int lease) {
  auto opened = std::make_unique<Opened>(lease);
  orIpcMemHandle_t handle;
  TORCH_CHECK_VALUE(where.handle.size() == sizeof(handle.reserved),
                    "A handle of openreg's memory has ",
                    sizeof(handle.reserved), " bytes; this one has ",
                    where.handle.size(), ".");
  std::memcpy(handle.reserved, where.handle.data(), sizeof(handle.reserved));
  check(orIpcOpenMemHandle(&opened->block, handle));
  orPointerAttributes block;
  check(orPointerGetAttributes(&block, opened->block));
  const c10::Device device(kDeviceType,
                           static_cast<c10::DeviceIndex>(block.device));
  void* data = static_cast<char*>(opened->block) + where.offset;
  c10::DataPtr owner(
      data, opened.release(),
      [](void* opened) { delete static_cast<Opened*>(opened); }, device);
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(owner));
}

// [hooks.sharing.register] Full devices ask for what is back; a forked child keeps nothing of others.
static const bool registered = [] {
  onFullDevice(collectLent);
  pthread_atfork([] { leases().mutex.lock(); }, [] { leases().mutex.unlock(); },
                 [] {
                   for (int lease : leases().open) close(lease);
                   leases().open.clear();
                   leases().mutex.unlock();
                 });
  return true;
}();

// [-]
}  // namespace openreg
