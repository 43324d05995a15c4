// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/storage/metadata.h"
#include "torch_openreg/chapters/hooks/storage/sharing.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace openreg {

// [hooks.metadata.bindings] Labels are a Python set of strings in both directions.
static const ChapterBindings label_bindings(
    "hooks", [](pybind11::module_& module) {
      module.def("labels", &labelsOf, pybind11::call_guard<NotForked>());
      module.def("set_labels", &setLabels, pybind11::call_guard<NotForked>());
    });

// [hooks.sharing.bindings] Python receives the driver's handle as bytes, which it can send.
static const ChapterBindings sharing_bindings(
    "hooks", [](pybind11::module_& module) {
      module.def("share_storage", [](const c10::Storage& storage) {
        IpcLocation where;
        {
          pybind11::gil_scoped_release others_run;
          where = shareStorage(storage);
        }
        return std::pair(pybind11::bytes(where.handle), where.offset);
      });
      module.def("lend", &lend);
      module.def(
          "ipc_collect", &collectLent,
          pybind11::call_guard<NotForked, pybind11::gil_scoped_release>());
      module.def("open_storage", [](const pybind11::bytes& handle,
                                    size_t offset, size_t bytes, int lease) {
        return openStorage({handle, offset}, bytes, lease);
      });
    });

// [-]
}  // namespace openreg
