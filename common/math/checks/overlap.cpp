// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/common/math/kernels/kernels.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace openreg {
namespace {

using Status = at::MemOverlapStatus;

// [common.overlap] Only the host can see overlap, because on the device each view becomes a separate tensor.
/// A key of which arguments overlap, and how; 0 if none do.
size_t overlapOf(const c10::OperatorHandle& op,
                 c10::ArrayRef<c10::IValue> arguments) {
  size_t key = 0;
  const auto add = [&](Status status, size_t place) {
    if (status == Status::Full || status == Status::Partial)
      key = followedBy(key, place << 1 | (status == Status::Partial));
  };
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t i) {
    // Kernels that write lists process the tensors one by one, without checks.
    if (!arguments[i].isTensor())
      return at::assert_no_internal_overlap(written);
    if (at::has_internal_overlap(written) == at::MemOverlap::Yes)
      add(Status::Partial, i);
    const size_t place = i << 8;
    for (size_t j = 0; j < arguments.size(); ++j) {
      const c10::IValue& other = arguments[j];
      if (other.isTensor() && j != i) {
        if (other.toTensor().defined())
          add(at::get_overlap_status(written, other.toTensor()), place + j);
      } else if (other.isTensorList() || other.isOptionalTensorList()) {
        for (const at::Tensor& each : tensorsOf({other}))
          add(at::get_overlap_status(written, each), place + j);
      }
    }
  });
  return key;
}

// [common.overlap.stand-in] The stand-ins overlap in the same way as the tensors, in as little memory as that takes.
class OverlappingStandIns {
 public:
  /// With `separate`, each tensor has memory of its own.
  OverlappingStandIns(c10::ArrayRef<c10::IValue> arguments, bool full_size,
                      int value, bool separate)
      : full_size_(full_size), value_(value), separate_(separate) {
    for (const at::Tensor& tensor : tensorsOf(arguments)) {
      auto [lowest, is_new] = lowest_.emplace(keyOf(tensor), offsetOf(tensor));
      lowest->second = std::min(lowest->second, offsetOf(tensor));
    }
  }

  at::Tensor operator()(const at::Tensor& tensor) {
    if (separate_) memory_.clear();
    auto& memory = memory_[keyOf(tensor)];
    if (!memory.defined()) memory = at::empty({0}, at::kByte);
    at::Tensor view = at::empty({0}, tensor.scalar_type());
    const auto [sizes, strides] = geometryOf(tensor);
    view.set_(memory.storage(), placeOf(tensor), sizes, strides);
    return filled(view, value_);
  }

  /// How many elements the stand-ins need, from the first to the last.
  static int64_t reachOf(c10::ArrayRef<c10::IValue> arguments) {
    const OverlappingStandIns full(arguments, true, 0, false);
    int64_t reach = 0;
    for (const at::Tensor& x : tensorsOf(arguments))
      reach += static_cast<int64_t>(at::detail::computeStorageNbytes(
          x.sizes(), x.strides(), 1, full.placeOf(x)));
    return reach;
  }

  // [common.overlap.shrink] A stand-in begins where its tensor begins in the part that the arguments use; a smaller one, at the first or second element.
 private:
  static const void* keyOf(const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }

  /// In bytes, and a multiple of every dtype's size.
  static int64_t offsetOf(const at::Tensor& tensor) {
    return tensor.storage_offset() * tensor.itemsize() / 16 * 16;
  }

  int64_t placeOf(const at::Tensor& tensor) const {
    const int64_t place =
        tensor.storage_offset() - lowest_.at(keyOf(tensor)) / tensor.itemsize();
    return full_size_ ? place : std::min<int64_t>(place, 1);
  }

  // [common.overlap.geometry] The strides of a small stand-in keep their order, and repeated elements stay repeated.
  std::pair<at::DimVector, at::DimVector> geometryOf(
      const at::Tensor& tensor) const {
    at::DimVector sizes(tensor.sizes()), strides(tensor.strides());
    if (full_size_) return {sizes, strides};
    at::DimVector order(tensor.dim());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return tensor.stride(a) < tensor.stride(b);
    });
    int64_t step = 1;
    for (const int64_t d : order) {
      sizes[d] = std::min<int64_t>(sizes[d], 2);
      if (strides[d] == 0) continue;
      strides[d] = step;
      step *= std::max<int64_t>(sizes[d], 1);
    }
    return {sizes, strides};
  }

  bool full_size_;
  int value_;
  bool separate_;
  std::unordered_map<const void*, int64_t> lowest_;
  std::unordered_map<const void*, at::Tensor> memory_;
};

// [common.overlap.decide] Overlap is the reason if the kernel passes without it and fails with it.
/// Whether the kernel is known to allow this overlap.
/// @throws if it is known to refuse it.
bool mayOverlap(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments, bool full_size) {
  const auto attempt = [&](int value, bool separate) {
    return rehearse(op, arguments,
                    OverlappingStandIns(arguments, full_size, value, separate),
                    c10::DispatchKey::CPU, separate);
  };
  for (const int value : {1, 0}) {
    const auto error = attempt(value, /*separate=*/false);
    if (!error) return true;
    if (!attempt(value, /*separate=*/true)) std::rethrow_exception(error);
  }
  return false;
}

/// Whether smaller stand-ins fit each other: the CPU's kernel would trust its
/// caller, but PyTorch's Meta kernel checks.
bool canShrink(const c10::OperatorHandle& op,
               c10::ArrayRef<c10::IValue> arguments) {
  OverlappingStandIns stand_ins(arguments, false, 0, false);
  return !rehearse(
      op, arguments,
      [&](const at::Tensor& x) { return stand_ins(x).to(at::kMeta); },
      c10::DispatchKey::Meta);
}

// [common.overlap.check] In the common case nothing overlaps, and nothing is rehearsed.
}  // namespace

void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool structured,
                  size_t resized) {
  const size_t overlap = overlapOf(op, arguments);
  if (overlap == 0) return;
  thread_local PassedKeys passed;
  size_t key = followedBy(followedBy(keyOf(op, arguments), overlap), resized);
  // Whether a kernel allows the overlap may depend on the sizes.
  for (const at::Tensor& tensor : tensorsOf(arguments)) {
    for (int64_t d = 0; d < tensor.dim(); ++d)
      key = followedBy(followedBy(key, tensor.size(d)), tensor.stride(d));
  }
  if (passed.find(key)) return;
  const bool small = isSmall(OverlappingStandIns::reachOf(arguments));
  // The CPU's kernel of a corrected operator may write beside its output.
  const bool rehearsable = !op.hasTag(at::Tag::nondeterministic_seeded) &&
                           !isCorrected(op) &&
                           (small || structured || canShrink(op, arguments));
  if (rehearsable && mayOverlap(op, arguments, small)) {
    passed.insert(key, {});
    return;
  }
  // The rehearsals taught us nothing, so refuse what most kernels refuse.
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    at::assert_no_internal_overlap(written);
    for (const at::Tensor& other : tensorsOf(arguments))
      at::assert_no_partial_overlap(written, other);
  });
}

// [-]
}  // namespace openreg
