// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/host_memory.h"
#include "chapters/operators/launch/launcher.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/Event.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.copy.same] Whether a copy is only bytes: the same elements, in the same order, without gaps.
bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg() &&
         ((a.is_contiguous() && b.is_contiguous()) ||
          (a.is_non_overlapping_and_dense() && a.strides() == b.strides()));
}

void copyBytes(const at::Tensor& to, const at::Tensor& from, orMemcpyKind kind,
               const c10::Stream& stream) {
  WithoutGil others_run;
  check(orMemcpyAsync(to.data_ptr(), from.const_data_ptr(), to.nbytes(), kind,
                      nativeStream(stream)));
}

// [operators.copy.room] Where two tensors differ, a third stands between them.
/// New memory on `device` that has the same bytes as `model` once it has its
/// values: its type, shape, bits, and its order unless that has gaps.
at::Tensor roomFor(const at::Tensor& model, c10::Device device) {
  const at::TensorOptions options = model.options().device(device);
  at::Tensor room =
      model.is_non_overlapping_and_dense()
          ? at::empty_strided(model.sizes(), model.strides(), options)
          : at::empty(model.sizes(), options);
  room._set_conj(model.is_conj());
  room._set_neg(model.is_neg());
  return room;
}

// [operators.copy.kernel] What the device does where bytes are not enough.
void convert(at::Tensor to, const at::Tensor& from) {
  // The CPU negates after it has converted, and not all types can be negated.
  to.copy_(from.scalar_type() == to.scalar_type() ? from : from.resolve_neg());
}

// [operators.copy.device] Within a device, a kernel does it all: types, strides, bits, broadcasting.
void copyOnDevice(const at::Tensor& to, const at::Tensor& from) {
  if (sameBytes(to, from)) {
    return copyBytes(to, from, orMemcpyDeviceToDevice,
                     currentStream(to.device().index()));
  }
  launchKernel("copy_", &convert, to, from);
}

/// `from`, or a copy of it on its device that has the bytes `to` shall have.
at::Tensor convertedFor(const at::Tensor& to, const at::Tensor& from) {
  if (sameBytes(to, from)) return from;
  at::Tensor converted = roomFor(to, from.device());
  copyOnDevice(converted, from);
  return converted;
}

// [operators.copy.pinned] Pageable memory is the driver's care; pinned memory is ours.
/// The driver has read or written pageable memory when it returns. Pinned
/// memory it will still use, so the host waits, or the block is not handed out
/// before the stream is done with it.
void settleHost(const at::Tensor& host, const c10::Stream& stream,
                bool non_blocking) {
  const c10::DataPtr& data = host.storage().data_ptr();
  if (!isPinned(data.get())) return;
  if (non_blocking) {
    hostAllocator().record_event(data.get(), data.get_context(), stream);
  } else {
    stream.synchronize();
  }
}

// [operators.copy.to-device] The host's bytes go over as they are; the device converts them.
void copyToDevice(const at::Tensor& to, const at::Tensor& from,
                  bool non_blocking) {
  const c10::Stream stream = currentStream(to.device().index());
  // A gap would go over as well; the host closes it first.
  const at::Tensor source =
      from.is_non_overlapping_and_dense() ? from : from.contiguous();
  const bool direct = sameBytes(to, source);
  const at::Tensor landed = direct ? to : roomFor(source, to.device());
  copyBytes(landed, source, orMemcpyHostToDevice, stream);
  settleHost(source, stream, non_blocking);
  if (!direct) copyOnDevice(to, landed);
}

// [operators.copy.to-host] The device converts first; the host only fills gaps.
void copyToHost(const at::Tensor& to, const at::Tensor& from,
                bool non_blocking) {
  const c10::Stream stream = currentStream(from.device().index());
  const at::Tensor source = convertedFor(to, from);
  const bool direct = sameBytes(to, source);
  const at::Tensor landed = direct ? to : roomFor(source, to.device());
  copyBytes(landed, source, orMemcpyDeviceToHost, stream);
  settleHost(landed, stream, non_blocking);
  if (!direct) at::Tensor(to).copy_(landed);
}

// [operators.copy.peers] Between devices, each side's stream waits for the other's.
void copyBetweenDevices(const at::Tensor& to, const at::Tensor& from) {
  const c10::Stream reads = currentStream(from.device().index());
  const c10::Stream writes = currentStream(to.device().index());
  const at::Tensor source = convertedFor(to, from);
  const bool direct = sameBytes(to, source);
  const at::Tensor landed = direct ? to : roomFor(source, to.device());
  c10::Event ready(kDeviceType), done(kDeviceType);
  ready.record(reads);
  ready.block(writes);
  check(orMemcpyPeerAsync(landed.data_ptr(), to.device().index(),
                          source.const_data_ptr(), from.device().index(),
                          source.nbytes(), nativeStream(writes)));
  done.record(writes);
  done.block(reads);
  if (!direct) copyOnDevice(to, landed);
}

// [operators.copy.types] What no kernel could convert is refused while there is none.
bool isNumber(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, true) || c10::isFloatingType(dtype) ||
         c10::isComplexType(dtype);
}

bool canCopy(const at::Tensor& to, const at::Tensor& from) {
  const at::ScalarType a = to.scalar_type(), b = from.scalar_type();
  if (a == b) return isNumber(a) || c10::isBitsType(a) || sameBytes(to, from);
  // Two numbers of four bits share a byte; nobody takes them apart.
  constexpr auto kPair = at::ScalarType::Float4_e2m1fn_x2;
  return isNumber(a) && isNumber(b) && a != kPair && b != kPair;
}

// [operators.copy.check] PyTorch hands copies on before it has looked at them.
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

// [operators.copy] Four ways, chosen by where the two tensors are.
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

// [operators.copy.register.bits] PyTorch resolves these views by copying them: without this, forever.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

// [-]
}  // namespace
}  // namespace openreg
