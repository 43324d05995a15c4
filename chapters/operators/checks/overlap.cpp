// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/argument.h"
#include "torch_openreg/chapters/operators/checks/outputs.h"
#include "torch_openreg/chapters/operators/checks/rehearsal.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include <string>
#include <unordered_map>

namespace openreg {
namespace {

using Status = at::MemOverlapStatus;

// [operators.overlap] Only the host can see overlap, because on the device each view becomes a separate tensor.
struct Overlap {
  size_t key = 0;  ///< which arguments overlap, and how; 0 if none do
  bool partial = false;

  void add(Status status, size_t place) {
    if (status != Status::Full && status != Status::Partial) return;
    key = c10::hash_combine(key, place << 1 | (status == Status::Partial));
    partial |= status == Status::Partial;
  }
};

/// PyTorch's in-place forms pass their first argument again as the output.
Overlap overlapOf(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool in_place) {
  Overlap overlap;
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t i) {
    if (at::has_internal_overlap(written) == at::MemOverlap::Yes)
      overlap.add(Status::Partial, i);
    const size_t place = i << 8;
    for (size_t j = in_place; j < arguments.size(); ++j) {
      const c10::IValue& other = arguments[j];
      if (other.isTensor() && j != i) {
        if (other.toTensor().defined())
          overlap.add(at::get_overlap_status(written, other.toTensor()),
                      place + j);
      } else if (other.isTensorList() || other.isOptionalTensorList()) {
        for (const at::Tensor& each : tensorsOf({other}))
          overlap.add(at::get_overlap_status(written, each), place + j);
      }
    }
  });
  return overlap;
}

// [operators.overlap.stand-in] The stand-ins overlap in the same way as the tensors.
class OverlappingStandIns {
 public:
  OverlappingStandIns(bool full_size, int value, bool separate)
      : full_size_(full_size), value_(value), separate_(separate) {}

  at::Tensor operator()(const at::Tensor& tensor) {
    if (separate_) memory_.clear();
    if (!full_size_) {
      // Tensors with the same address share a stand-in.
      auto& shared = memory_[tensor.const_data_ptr()];
      if (!shared.defined() || shared.scalar_type() != tensor.scalar_type() ||
          shared.dim() != tensor.dim())
        shared = makeStandIn(tensor, tensor.scalar_type(), value_, false);
      return shared;
    }
    const at::Storage& storage = tensor.storage();
    auto& shared = memory_[storage.unsafeGetStorageImpl()];
    if (!shared.defined())
      shared = at::empty(static_cast<int64_t>(storage.nbytes()), at::kByte);
    at::Tensor view = at::empty({0}, tensor.scalar_type());
    view.set_(shared.storage(), tensor.storage_offset(), tensor.sizes(),
              tensor.strides());
    return filled(view, value_);
  }

 private:
  bool full_size_;
  int value_;
  bool separate_;
  std::unordered_map<const void*, at::Tensor> memory_;
};

// [operators.overlap.decide] Whether a kernel allows overlap is known only by running it.
bool isOverlapError(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& error) {
    return error.msg().find("to a single memory location") != std::string::npos;
  } catch (...) {
    return false;
  }
}

/// Whether the kernel is known to allow this overlap.
/// @throws if it is known to refuse it, or probably does.
bool mayOverlap(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments, bool full_size) {
  const bool is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  for (const int value : {1, 0}) {
    if (is_random) break;
    auto error =
        rehearse(op, arguments, OverlappingStandIns(full_size, value, false));
    // The CPU skips the copy of a tensor to itself; the device has two tensors.
    if (!error)
      error =
          rehearse(op, arguments, OverlappingStandIns(full_size, value, true));
    if (!error) return true;
    if (isOverlapError(error)) std::rethrow_exception(error);
  }
  // The rehearsals show nothing, so refuse what most kernels refuse.
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    at::assert_no_internal_overlap(written);
    for (const at::Tensor& other : tensorsOf(arguments))
      at::assert_no_partial_overlap(written, other);
  });
  return false;
}

// [operators.overlap.check] In the common case nothing overlaps, and nothing is rehearsed.
}  // namespace

void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool structured,
                  bool in_place) {
  const Overlap overlap = overlapOf(op, arguments, in_place);
  if (overlap.key == 0) return;
  thread_local std::unordered_set<size_t> passed;
  const size_t key = c10::hash_combine(keyOf(op, arguments), overlap.key);
  if (passed.contains(key)) return;
  const bool full_size = overlap.partial || !structured;
  if (mayOverlap(op, arguments, full_size)) passed.insert(key);
}

// [-]
}  // namespace openreg
