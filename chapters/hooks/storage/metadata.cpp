// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/storage/metadata.h"
#include "torch_openreg/chapters/device/runtime.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

namespace openreg {

// [hooks.metadata.keep] Metadata belongs to a tensor, not to its storage.
std::set<std::string> labelsOf(const at::Tensor& tensor) {
  auto* metadata =
      dynamic_cast<Metadata*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
  return metadata ? metadata->labels() : std::set<std::string>();
}

void setLabels(const at::Tensor& tensor, std::set<std::string> labels) {
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
        std::set<std::string> labels;
        for (const auto& [name, holds] : names)
          if (holds) labels.insert(name);
        setLabels(tensor, std::move(labels));
      });
  return true;
}();

// [-]
}  // namespace openreg
