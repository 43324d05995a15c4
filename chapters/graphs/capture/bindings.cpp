// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/graphs/capture/captured_graph.h"
#include "torch_openreg/common/bindings.h"

namespace openreg {

// [graphs.bindings] PyTorch binds the class of graphs; these are the functions that it does not have.
static const ChapterBindings graphs_bindings(
    "graphs", [](pybind11::module_& module) {
      module.def("graph_pool_handle", &newPoolHandle);
      module.def(
          "is_current_stream_capturing",
          [](c10::DeviceIndex index) {
            return isCaptured(currentStream(index));
          },
          pybind11::arg("index") = -1, Guarded());
    });

// [-]
}  // namespace openreg
