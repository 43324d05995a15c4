// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/storage/metadata.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <set>
#include <string>
#include <utility>

namespace openreg {

// [hooks.metadata.bindings] Labels are a Python set of str in both directions, because not all bytes could be read back.
static std::string toLabel(pybind11::handle label) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(label.ptr())
                         ? PyUnicode_AsUTF8AndSize(label.ptr(), &size)
                         : nullptr;
  PyErr_Clear();
  TORCH_CHECK_TYPE(text, "A label must be a str that UTF-8 can encode; ",
                   std::string(pybind11::repr(label)), " is not.");
  return {text, static_cast<size_t>(size)};
}

static const ChapterBindings label_bindings(
    "hooks", [](pybind11::module_& module) {
      module.def("labels", &labelsOf, Guarded());
      module.def(
          "set_labels",
          [](const at::Tensor& tensor, const pybind11::set& labels) {
            std::set<std::string> names;
            for (pybind11::handle label : labels) names.insert(toLabel(label));
            setLabels(tensor, std::move(names));
          },
          Guarded());
    });

// [-]
}  // namespace openreg
