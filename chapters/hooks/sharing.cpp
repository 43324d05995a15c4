// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/sharing.h"
#include "chapters/device/runtime.h"
#include "common/error.h"
#include "common/openreg/openreg_tools.h"

#include <unistd.h>

#include <cstring>
#include <memory>

namespace openreg {

// [hooks.sharing.share] The driver knows blocks; a storage may be a part of one.
Whereabouts shareStorage(const c10::Storage& storage) {
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

// [hooks.sharing.opened] First the memory is closed, then its owner is told.
namespace {

struct Opened {
  explicit Opened(int lease) : lease(lease) {}
  ~Opened() {
    if (block) orIpcCloseMemHandle(block);
    close(lease);
  }

  void* block = nullptr;
  const int lease;
};

}  // namespace

// [hooks.sharing.open] A storage over memory that its deleter does not free, but closes.
c10::Storage openStorage(const Whereabouts& where, size_t bytes, int lease) {
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

// [-]
}  // namespace openreg
