// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

#include <set>
#include <string>

namespace openreg {

// [hooks.metadata] Metadata is what the backend knows about a tensor and PyTorch does not.
/// Labels that a tensor carries, for example that its memory is tiled or
/// compressed. A detached tensor keeps them, and so does one that is loaded
/// from a file; views, copies and results of operators have none. They stay
/// when the memory is written or resized.
class Metadata final : public c10::BackendMeta {
 public:
  /// A label is any string; PyTorch does not read it.
  explicit Metadata(std::set<std::string> labels)
      : labels_(std::move(labels)) {}
  c10::intrusive_ptr<c10::BackendMeta> clone(
      const c10::intrusive_ptr<c10::BackendMeta>&) const override {
    return c10::make_intrusive<Metadata>(labels_);
  }
  /// In alphabetical order.
  const std::set<std::string>& labels() const { return labels_; }

 private:
  const std::set<std::string> labels_;
};

/// The labels of `tensor`; none if it has no metadata.
std::set<std::string> labelsOf(const at::Tensor& tensor);

/// Replaces the labels of `tensor`.
/// @throws c10::ValueError if it is not on one of our devices, or if a label is
/// "conj" or "neg", which PyTorch uses itself in files.
void setLabels(const at::Tensor& tensor, std::set<std::string> labels);

// [-]
}  // namespace openreg
