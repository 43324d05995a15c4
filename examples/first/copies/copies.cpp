// SPDX-License-Identifier: BSD-3-Clause
#include "guard/guard.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

namespace tiny {

// [first.copies.move] Moving bytes: enqueue on the current stream, then wait.
static void move(void* to, const void* from, size_t bytes, orMemcpyKind kind,
                 const at::Tensor& ours) {
  const orStream_t stream = handleOf(currentStream(ours.get_device()));
  check(orMemcpyAsync(to, from, bytes, kind, stream));
  check(orStreamSynchronize(stream));
}

/// How many bytes lie between a tensor's first element and the end of its last.
static size_t extentOf(const at::Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
}

// [first.copies.twin] A tensor on the CPU with the same strides, so that bytes keep their places.
static at::Tensor twinOf(const at::Tensor& tensor) {
  at::Tensor twin =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  twin._set_conj(tensor.is_conj());
  twin._set_neg(tensor.is_neg());
  return twin;
}

static at::Tensor onHost(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const at::Tensor twin = twinOf(tensor);
  move(twin.data_ptr(), tensor.const_data_ptr(), extentOf(tensor), orMemcpyDeviceToHost, tensor);
  return twin;
}

// [first.copies.direct] Equal dtype, shape and order on one device: the driver copies alone.
static bool isDirect(const at::Tensor& from, const at::Tensor& to) {
  return from.device() == to.device() && from.dtype() == to.dtype() && from.sizes() == to.sizes() &&
         from.is_contiguous() && to.is_contiguous() && from.is_conj() == to.is_conj() &&
         from.is_neg() == to.is_neg();
}

// [first.copies.copy] The CPU converts dtypes and strides, and the driver moves what results.
static at::Tensor copyFrom(const at::Tensor& from, const at::Tensor& to, bool) {
  if (to.numel() == 0) return at::empty(from.sizes(), at::kMeta).expand(to.sizes()), to;  // Checks.
  at::assert_no_partial_overlap(to, from);
  if (isDirect(from, to)) {
    move(to.data_ptr(), from.const_data_ptr(), to.nbytes(), orMemcpyDeviceToDevice, to);
    return to;
  }
  if (to.is_cpu()) return at::Tensor(to).copy_(onHost(from));
  // What lies between the elements of `to` belongs to others, and goes along.
  at::Tensor twin = to.is_non_overlapping_and_dense() ? twinOf(to) : onHost(to);
  twin.copy_(onHost(from));
  move(to.data_ptr(), twin.const_data_ptr(), extentOf(to), orMemcpyHostToDevice, to);
  return to;
}

static at::Tensor copyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) to.resize_(from.sizes());
  return copyFrom(from, to, false);
}

// [first.copies.register] Every copy_ that involves our device ends at one of these two.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copyFrom);
  m.impl("_copy_from_and_resize", &copyFromAndResize);
}

// [first.copies.bits] PyTorch resolves the two bits by a copy, so the copy itself must see them.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

// [-]
}  // namespace tiny
