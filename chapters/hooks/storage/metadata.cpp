// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/storage/metadata.h"
#include "torch_openreg/chapters/device/runtime.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <string_view>

namespace openreg {

// [hooks.metadata.text] A label is text in UTF-8: Python could not read any other back.
static bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const auto at = [&](size_t i) {
      return static_cast<unsigned char>(text[i]);
    };
    const size_t length = at(0) < 0x80             ? 1
                          : (at(0) & 0xE0) == 0xC0 ? 2
                          : (at(0) & 0xF0) == 0xE0 ? 3
                          : (at(0) & 0xF8) == 0xF0 ? 4
                                                   : 0;
    if (length == 0 || text.size() < length) return false;
    uint32_t code = length == 1 ? at(0) : at(0) & (0x7F >> length);
    for (size_t i = 1; i < length; ++i) {
      if ((at(i) & 0xC0) != 0x80) return false;
      code = code << 6 | (at(i) & 0x3F);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (code < kLeast[length] || code > 0x10FFFF || is_surrogate) return false;
    text.remove_prefix(length);
  }
  return true;
}

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
  for (const std::string& label : labels) {
    TORCH_CHECK_VALUE(isUtf8(label),
                      "A label must be text in UTF-8; the one of ",
                      label.size(), " bytes is not.");
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
