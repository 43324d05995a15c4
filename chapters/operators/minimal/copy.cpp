// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"
#include "torch_openreg/common/tensors.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/Event.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.copy.same] A copy of bytes is enough if dtype, bits and order agree and neither tensor has gaps.
bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg() &&
         ((a.is_contiguous() && b.is_contiguous()) ||
          (a.is_non_overlapping_and_dense() && a.strides() == b.strides()));
}

// [operators.copy.bytes] A copy that the user interrupts stays enqueued, so its host memory must live until it has run.
void keepUntilCopied(const at::Tensor& host, orStream_t stream) {
  auto* kept = new at::Tensor(host);
  const auto drop = [](void* kept) { delete static_cast<at::Tensor*>(kept); };
  // A device that has failed runs neither the copy nor this.
  if (orLaunchHostFunc(stream, drop, kept)) drop(kept);
}

void copyBytes(const at::Tensor& to, const at::Tensor& from, orMemcpyKind kind,
               const c10::Stream& stream) {
  const orStream_t native = nativeStream(stream);
  orError_t error = orSuccess;
  try {
    check(waitInterruptibly([&] {
      error = orMemcpyAsync(to.data_ptr(), from.const_data_ptr(), to.nbytes(),
                            kind, native);
      return error;
    }));
  } catch (...) {
    if (error == orErrorNotReady)
      keepUntilCopied(to.is_cpu() ? to : from, native);
    throw;
  }
}

// [operators.copy.staging] A conversion that the other side must do needs a staging tensor.
/// An empty tensor on `device` with the dtype, shape and bits of `model`. It
/// has the strides of `model` too, unless they leave gaps.
at::Tensor stagingFor(const at::Tensor& model, c10::Device device) {
  const at::TensorOptions options = model.options().device(device);
  at::Tensor staging =
      model.is_non_overlapping_and_dense()
          ? at::empty_strided(model.sizes(), model.strides(), options)
          : at::empty(model.sizes(), options);
  staging._set_conj(model.is_conj());
  staging._set_neg(model.is_neg());
  return staging;
}

// [operators.copy.device] Within a device, one kernel handles dtypes, strides, bits and broadcasting.
void copyOnDevice(const at::Tensor& to, const at::Tensor& from) {
  if (sameBytes(to, from)) {
    return copyBytes(to, from, orMemcpyDeviceToDevice,
                     currentStream(to.device().index()));
  }
  launchConversion(to, from);
}

/// `from`, or a copy of it on its own device with the bytes that `to` needs.
at::Tensor convertedFor(const at::Tensor& to, const at::Tensor& from) {
  if (sameBytes(to, from)) return from;
  at::Tensor converted = stagingFor(to, from.device());
  copyOnDevice(converted, from);
  return converted;
}

// [operators.copy.finish] A copy that may block has ended when it returns; for any other, pinned memory must live until the stream has used it.
/// After it, every stream of the program may read what was copied. The driver
/// alone promises less: it has finished with pageable memory of the host.
void finish(const at::Tensor& host, const c10::Stream& stream,
            bool non_blocking) {
  const auto keep = [&] {
    const c10::DataPtr& data = host.storage().data_ptr();
    if (!isPinned(data.get())) return;
    hostAllocator().record_event(data.get(), data.get_context(), stream);
  };
  if (non_blocking) return keep();
  try {
    stream.synchronize();
  } catch (...) {
    keep();  // The wait may have been interrupted.
    throw;
  }
}

// [operators.copy.to-device] The host sends its bytes unchanged, and the device converts them.
void copyToDevice(const at::Tensor& to, const at::Tensor& from,
                  bool non_blocking) {
  const c10::Stream stream = currentStream(to.device().index());
  // The driver copies gaps too, so the host closes them first.
  const at::Tensor source =
      from.is_non_overlapping_and_dense() ? from : from.contiguous();
  const bool direct = sameBytes(to, source);
  const at::Tensor staged = direct ? to : stagingFor(source, to.device());
  copyBytes(staged, source, orMemcpyHostToDevice, stream);
  if (!direct) copyOnDevice(to, staged);
  finish(source, stream, non_blocking);
}

// [operators.copy.to-host] The device converts first, so the host only has to fill gaps. The driver itself waits until pageable memory is written.
void copyToHost(const at::Tensor& to, const at::Tensor& from,
                bool non_blocking) {
  const c10::Stream stream = currentStream(from.device().index());
  const at::Tensor source = convertedFor(to, from);
  const bool direct = sameBytes(to, source);
  const at::Tensor staged = direct ? to : stagingFor(source, to.device());
  const bool pinned = isPinned(staged.data_ptr());
  copyBytes(staged, source, orMemcpyDeviceToHost, stream);
  if (pinned) finish(staged, stream, non_blocking);
  if (!direct) at::Tensor(to).copy_(staged);
}

// [operators.copy.peers] Between devices, the stream of each side waits for the other.
void copyBetweenDevices(const at::Tensor& to, const at::Tensor& from) {
  const c10::Stream reads = currentStream(from.device().index());
  const c10::Stream writes = currentStream(to.device().index());
  const at::Tensor source = convertedFor(to, from);
  const bool direct = sameBytes(to, source);
  const at::Tensor staged = direct ? to : stagingFor(source, to.device());
  c10::Event ready(kDeviceType), done(kDeviceType);
  ready.record(reads);
  ready.block(writes);
  check(orMemcpyPeerAsync(staged.data_ptr(), to.device().index(),
                          source.const_data_ptr(), from.device().index(),
                          source.nbytes(), nativeStream(writes)));
  done.record(writes);
  done.block(reads);
  if (!direct) copyOnDevice(to, staged);
}

// [operators.copy.types] The host refuses conversions for which there can be no kernel.
bool isNumber(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, true) || c10::isFloatingType(dtype) ||
         c10::isComplexType(dtype);
}

bool canCopy(const at::Tensor& to, const at::Tensor& from) {
  const at::ScalarType a = to.scalar_type(), b = from.scalar_type();
  if (a == b) return isNumber(a) || c10::isBitsType(a) || sameBytes(to, from);
  // Two numbers of four bits share a byte; no CPU kernel separates them.
  constexpr auto kPair = at::ScalarType::Float4_e2m1fn_x2;
  return isNumber(a) && isNumber(b) && a != kPair && b != kPair;
}

// [operators.copy.check] PyTorch calls `_copy_from` without having checked its arguments, so we check them.
void checkCopy(const at::Tensor& to, const at::Tensor& from) {
  TORCH_CHECK(at::is_expandable_to(from.sizes(), to.sizes()),
              "copy_ cannot broadcast a tensor of ", from.sizes(),
              " to one of ", to.sizes(), ".");
  TORCH_CHECK_NOT_IMPLEMENTED(canCopy(to, from), "copy_ cannot make ",
                              to.scalar_type(), " of ", from.scalar_type(),
                              "; only numbers are converted.");
  checkMemory(to);
  checkMemory(from);
  at::assert_no_internal_overlap(to);
  at::assert_no_partial_overlap(to, from);
  if (from.is_complex() && !to.is_complex() && to.scalar_type() != at::kBool) {
    TORCH_WARN_ONCE(
        "Casting complex values to real discards the imaginary part");
  }
}

// [operators.copy] The devices of the two tensors alone decide which of four ways a copy takes.
at::Tensor copyFrom(const at::Tensor& self, const at::Tensor& dst,
                    bool non_blocking) {
  checkCopy(dst, self);
  if (dst.numel() == 0) return dst;
  if (self.is_cpu()) {
    copyToDevice(dst, self, non_blocking);
  } else if (dst.is_cpu()) {
    copyToHost(dst, self, non_blocking);
  } else if (self.device() == dst.device()) {
    copyOnDevice(dst, self);
  } else {
    copyBetweenDevices(dst, self);
  }
  return dst;
}

at::Tensor copyFromAndResize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) dst.resize_(self.sizes());
  return copyFrom(self, dst, false);
}

// [operators.copy.register] Every copy that PyTorch makes arrives at one of two operators.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copyFrom);
  m.impl("_copy_from_and_resize", &copyFromAndResize);
}

// [operators.copy.register.bits] PyTorch resolves conjugate and negative views by copying them. A copy must not be copied again, and a stream uses the view's own memory.
void leaveBits(torch::Library& m) {
  for (const char* name :
       {"_copy_from", "_copy_from_and_resize", "record_stream"})
    m.impl(name, torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) { leaveBits(m); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { leaveBits(m); }

// [-]
}  // namespace
}  // namespace openreg
