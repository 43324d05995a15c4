// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/sharing.h"
#include "common/bindings.h"

#include <torch/csrc/utils/pybind.h>

namespace openreg {

// [hooks.sharing.bindings] Bytes to Python are what a handle is to the driver.
static const ChapterBindings bindings("hooks", [](pybind11::module_& module) {
  module.def("share_storage", [](const c10::Storage& storage) {
    Whereabouts where;
    {
      pybind11::gil_scoped_release others_run;
      where = shareStorage(storage);
    }
    return std::pair(pybind11::bytes(where.handle), where.offset);
  });
  module.def("lend", &lend);
  module.def("ipc_collect", &collectLent,
             pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("open_storage", [](const pybind11::bytes& handle, size_t offset,
                                size_t bytes, int lease) {
    return openStorage({handle, offset}, bytes, lease);
  });
});

// [-]
}  // namespace openreg
