// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/kernels/kernels.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace openreg {
namespace {

// [common.trusted] A kernel that trusts its indices would write anywhere. A backward one trusts those that its forward has checked, but a forward that is refused on a device does not end the program, so the backward comes all the same.
using Numbers = std::span<const int64_t>;

/// @throws c10::IndexError unless all are from 0 to `count` - 1, or `except`.
void checkRange(Numbers indices, int64_t count, const char* name,
                std::optional<int64_t> except = {}) {
  for (const int64_t each : indices)
    TORCH_CHECK_INDEX((each >= 0 && each < count) || each == except, name, " ",
                      each, " is out of bounds.");
}

std::vector<int64_t> numbersOf(const at::Tensor& tensor) {
  const at::Tensor all = tensor.to(at::kLong).contiguous();
  const auto* first = all.const_data_ptr<int64_t>();
  return {first, first + all.numel()};
}

/// The arguments of a call, by their names.
struct Call {
  const c10::OperatorHandle& op;
  Stack& arguments;

  bool has(const char* name) const {
    return op.schema().argumentIndexWithName(name).has_value();
  }
  c10::IValue& operator[](const char* name) const {
    return argumentNamed(name, op, arguments);
  }
  /// Undefined if it is None.
  at::Tensor tensor(const char* name) const {
    const c10::IValue& value = (*this)[name];
    return value.isTensor() ? value.toTensor() : at::Tensor();
  }
  std::vector<int64_t> numbers(const char* name) const {
    const c10::IValue& value = (*this)[name];
    return value.isTensor() ? numbersOf(value.toTensor()) : value.toIntVector();
  }
};

// [common.trusted.targets] A target is a class, and so is each label of `ctc_loss` that counts.
}  // namespace

void checkTargets(const at::Tensor& self, const at::Tensor& target,
                  int64_t ignored) {
  checkRange(numbersOf(target), self.size(self.dim() == 1 ? 0 : 1), "Target",
             ignored);
}

// [common.trusted.summand] The meta function of a product leaves it to the kernel to expand the summand.
void checkSummand(const at::Tensor& summand, at::IntArrayRef sizes) {
  if (!at::is_expandable_to(summand.sizes(), sizes)) summand.expand(sizes);
}

namespace {

void checkTargetsOf(const Call& call) {
  checkTargets(call.tensor("self"), call.tensor("target"),
               call["ignore_index"].toInt());
}

void checkLabels(const Call& call) {
  const at::Tensor targets = call.tensor("targets");
  const size_t padded = targets.dim() == 2 ? targets.size(1) : 0;
  const int64_t classes = call.tensor("log_probs").size(-1);
  const std::vector<int64_t> labels = call.numbers("targets");
  Numbers rest = labels;
  for (const int64_t length : call.numbers("target_lengths")) {
    const size_t own = std::clamp<int64_t>(length, 0, rest.size());
    checkRange(rest.first(own), classes, "Target");
    rest = rest.subspan(padded ? std::min(padded, rest.size()) : own);
  }
}

// [common.trusted.rows] The gradients of embeddings count how often a row was used, and add to the row of a bag.
void checkRows(const Call& call) {
  if (call["scale_grad_by_freq"].toBool())
    checkRange(call.numbers("indices"), call["num_weights"].toInt(), "Index");
}

void checkBagRows(const Call& call) {
  const int64_t rows = call.has("num_weights") ? call["num_weights"].toInt()
                                               : call.tensor("weight").size(0);
  checkRange(call.numbers("indices"), rows, "Index");
  checkRange(call.numbers("offset2bag"), call.tensor("grad").size(0), "Bag");
}

/// Forward, the kernel trusts where bags begin. That of the largest number
/// reads the last bag even if there is none.
void checkBags(const Call& call) {
  const std::vector<int64_t> begins = call.numbers("offsets");
  TORCH_CHECK(std::is_sorted(begins.begin(), begins.end()) &&
                  (begins.empty() || begins[0] >= 0),
              "The offsets of bags are 0 or more, and do not decrease.");
  const bool has_bags = begins.size() > call["include_last_offset"].toBool();
  TORCH_CHECK(has_bags || call["mode"].toInt() != 2 ||
                  call.tensor("indices").numel() == 0,
              "There are indices, but no bag for them.");
}

// [common.trusted.segments] The segments of a row follow each other within the data.
void checkSegments(const Call& call) {
  const int64_t size = call.tensor("data").size(call["axis"].toInt());
  const at::Tensor lengths = call.tensor("lengths");
  const at::Tensor offsets = call.tensor("offsets");
  const auto holds = [](const at::Tensor& all) {
    return all.all().item<bool>();
  };
  TORCH_CHECK(lengths.defined()
                  ? holds(lengths >= 0) && holds(lengths.sum(-1) <= size)
                  : holds(offsets >= 0) && holds(offsets <= size) &&
                        holds(offsets.diff() >= 0),
              "The segments do not fit the data.");
}

// [common.trusted.check] A rehearsal calls the kernel with stand-ins, so it is checked there, too.
}  // namespace

void checkTrusted(const c10::OperatorHandle& op, Stack& arguments) {
  using Check = void (*)(const Call&);
  static const auto& checks = *new std::unordered_map<std::string_view, Check>{
      {"aten::_ctc_loss", &checkLabels},
      {"aten::_ctc_loss_backward", &checkLabels},
      {"aten::_embedding_bag", &checkBags},
      {"aten::_embedding_bag_forward_only", &checkBags},
      {"aten::_embedding_bag_dense_backward", &checkBagRows},
      {"aten::_embedding_bag_per_sample_weights_backward", &checkBagRows},
      {"aten::_segment_reduce_backward", &checkSegments},
      {"aten::embedding_dense_backward", &checkRows},
      {"aten::nll_loss2d_backward", &checkTargetsOf},
      {"aten::nll_loss_backward", &checkTargetsOf},
  };
  const auto found = checks.find(op.schema().name());
  if (found != checks.end()) found->second({op, arguments});
}

// [-]
}  // namespace openreg
