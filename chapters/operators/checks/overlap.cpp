// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/launch/argument.h"
#include "chapters/operators/checks/outputs.h"
#include "chapters/operators/checks/rehearsal.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include <string>
#include <unordered_map>

namespace openreg {
namespace {

using Status = at::MemOverlapStatus;

// [operators.overlap] On the device every view is a tensor of its own, so only the host can see this.
struct Overlap {
  size_t key = 0;  ///< who overlaps with whom, and how; 0 if nobody does
  bool partial = false;

  void add(Status status, size_t place) {
    if (status != Status::Full && status != Status::Partial) return;
    key = c10::hash_combine(key, place << 1 | (status == Status::Partial));
    partial |= status == Status::Partial;
  }
};

/// An in-place form of PyTorch's hands its first argument over twice.
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

// [operators.overlap.stand-in] Stand-ins that overlap as the tensors do.
class Overlapping {
 public:
  Overlapping(bool as_large, int value, bool apart)
      : as_large_(as_large), value_(value), apart_(apart) {}

  at::Tensor operator()(const at::Tensor& tensor) {
    if (apart_) memory_.clear();
    if (!as_large_) {
      // What has one address has one stand-in.
      auto& shared = memory_[tensor.const_data_ptr()];
      if (!shared.defined() || shared.scalar_type() != tensor.scalar_type() ||
          shared.dim() != tensor.dim())
        shared = standInFor(tensor, tensor.scalar_type(), value_, false);
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
  bool as_large_;
  int value_;
  bool apart_;
  std::unordered_map<const void*, at::Tensor> memory_;
};

// [operators.overlap.judge] Some of the CPU's kernels write where they read, others refuse, and none says it beforehand.
bool namesMemory(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& error) {
    return error.msg().find("to a single memory location") != std::string::npos;
  } catch (...) {
    return false;
  }
}

/// Whether it is known to be right.
/// @throws if it is known to be wrong, or likely.
bool mayOverlap(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments, bool as_large) {
  const bool draws = op.hasTag(at::Tag::nondeterministic_seeded);
  for (const int value : {1, 0}) {
    if (draws) break;
    auto error = rehearse(op, arguments, Overlapping(as_large, value, false));
    // The CPU passes over a copy of a tensor to itself; the device sees two.
    if (!error)
      error = rehearse(op, arguments, Overlapping(as_large, value, true));
    if (!error) return true;
    if (namesMemory(error)) std::rethrow_exception(error);
  }
  // Nothing was learnt: what most kernels refuse is refused.
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    at::assert_no_internal_overlap(written);
    for (const at::Tensor& other : tensorsOf(arguments))
      at::assert_no_partial_overlap(written, other);
  });
  return false;
}

// [operators.overlap.check] Nearly always nobody overlaps, and that is all that is asked.
}  // namespace

void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool structured,
                  bool in_place) {
  const Overlap overlap = overlapOf(op, arguments, in_place);
  if (overlap.key == 0) return;
  thread_local std::unordered_set<size_t> passed;
  const size_t key = c10::hash_combine(keyOf(op, arguments), overlap.key);
  if (passed.contains(key)) return;
  const bool as_large = overlap.partial || !structured;
  if (mayOverlap(op, arguments, as_large)) passed.insert(key);
}

// [-]
}  // namespace openreg
