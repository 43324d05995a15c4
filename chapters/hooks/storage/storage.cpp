// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/storage/storage.h"
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <algorithm>
#include <cstdint>

namespace openreg {

// [hooks.storage.resize] Allocate, copy what still fits, release the old memory.
void resizeStorage(const c10::Storage& storage, size_t bytes) {
  TORCH_CHECK_VALUE(bytes <= PTRDIFF_MAX, "A storage has 0 bytes or more, not ",
                    static_cast<ptrdiff_t>(bytes), ".");
  TORCH_CHECK_VALUE(storage.resizable(), "The storage of ", storage.nbytes(),
                    " bytes cannot be resized to ", bytes,
                    " bytes: its memory is part of another storage, or shared "
                    "with another process.");
  DeviceScope scope(storage.device().index());
  c10::DataPtr data = allocator().allocate(bytes);
  const size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    const c10::Stream stream = currentStream(storage.device().index());
    WithoutGil others_run;
    check(orMemcpyAsync(data.get(), storage.data(), kept,
                        orMemcpyDeviceToDevice, nativeStream(stream)));
    // The old block may belong to another stream, but must outlive this copy.
    allocator().recordStream(storage.data_ptr(), stream);
  }
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

// [-]
}  // namespace openreg
