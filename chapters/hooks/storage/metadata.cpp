// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>
#include <torch/csrc/jit/serialization/pickler_helper.h>
#include <torch/csrc/utils/pybind.h>

#include <set>
#include <string>
#include <utility>

namespace openreg {

// [hooks.metadata] Metadata is what the backend knows about a tensor and PyTorch does not.
using Labels = std::set<std::string>;

/// Labels that a tensor carries, for example that its memory is tiled or
/// compressed. A detached tensor keeps them, and so does one that is loaded
/// from a file; views, copies and results of operators have none. They stay
/// when the memory is written or resized.
struct Metadata final : c10::BackendMeta {
  explicit Metadata(Labels labels) : labels(std::move(labels)) {}
  c10::intrusive_ptr<c10::BackendMeta> clone(
      const c10::intrusive_ptr<c10::BackendMeta>&) const override {
    return c10::make_intrusive<Metadata>(labels);
  }
  const Labels labels;
};

// [hooks.metadata.keep] Metadata belongs to a tensor, not to its storage.
static Labels labelsOf(const at::Tensor& tensor) {
  auto* metadata =
      dynamic_cast<Metadata*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return metadata ? metadata->labels : Labels();
}

static void setLabels(const at::Tensor& tensor, Labels labels) {
  TORCH_CHECK_VALUE(tensor.device().type() == kDeviceType,
                    "Only a tensor on an openreg device has labels; this one "
                    "is on ",
                    tensor.device(), ".");
  for (const char* taken : {"conj", "neg"}) {
    TORCH_CHECK_VALUE(!labels.contains(taken), "The label ", taken,
                      " is PyTorch's own; choose another.");
  }
  tensor.unsafeGetTensorImpl()->set_backend_meta(
      c10::make_intrusive<Metadata>(std::move(labels)));
}

// [hooks.metadata.register] A file holds the labels as names, each true or false.
using Names = std::unordered_map<std::string, bool>;

static const bool labels_registered = [] {
  torch::jit::TensorBackendMetaRegistry(
      kDeviceType,
      [](const at::Tensor& tensor, Names& names) {
        for (const std::string& label : labelsOf(tensor)) names[label] = true;
      },
      [](const at::Tensor& tensor, Names& names) {
        Labels labels;
        for (const auto& [name, holds] : names)
          if (holds) labels.insert(name);
        setLabels(tensor, std::move(labels));
      });
  return true;
}();

// [hooks.metadata.bindings] Python has the labels as a set of str.
static const ChapterBindings label_bindings(
    "hooks", [](pybind11::module_& module) {
      module.def("labels", &labelsOf, Guarded());
      module.def("set_labels", &setLabels, Guarded());
    });

// [-]
}  // namespace openreg
