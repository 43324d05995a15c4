// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/host_memory.h"
#include "chapters/operators/launcher.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.copy.same] Whether a copy is only bytes.
bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.is_contiguous() && b.is_contiguous() && a.is_conj() == b.is_conj() &&
         a.is_neg() == b.is_neg();
}

void copyBytes(const at::Tensor& to, const at::Tensor& from,
               orMemcpyKind kind) {
  const c10::Device device = to.is_cpu() ? from.device() : to.device();
  DeviceScope scope(device.index());
  check(orMemcpyAsync(to.data_ptr(), from.data_ptr(), to.nbytes(), kind,
                      nativeStream(currentStream(device.index()))));
}

// [operators.copy.device] Within a device, a kernel does it all: types, strides, broadcasting.
void copyOnDevice(const at::Tensor& to, const at::Tensor& from) {
  if (sameBytes(to, from)) return copyBytes(to, from, orMemcpyDeviceToDevice);
  launchKernel(
      "copy_", [](at::Tensor to, const at::Tensor& from) { to.copy_(from); },
      to, from);
}

/// `tensor`, or a contiguous copy of it on the same device with this type and
/// this shape, conjugated and negated as its bits say.
at::Tensor packed(const at::Tensor& tensor, at::ScalarType dtype,
                  at::IntArrayRef sizes) {
  if (tensor.scalar_type() == dtype && tensor.sizes() == sizes &&
      tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) {
    return tensor;
  }
  at::Tensor copy = at::empty(sizes, tensor.options().dtype(dtype));
  return copy.copy_(tensor);
}

// [operators.copy.pinned] Pinned memory that the device still reads must not be handed out again.
void keepUntilDone(const at::Tensor& host, c10::Device device,
                   bool non_blocking) {
  const c10::Stream stream = currentStream(device.index());
  const c10::DataPtr& data = host.storage().data_ptr();
  if (!non_blocking) {
    stream.synchronize();
  } else if (isPinned(data.get())) {
    hostAllocator().record_event(data.get(), data.get_context(), stream);
  }
}

// [operators.copy.to-device] The host's bytes go over as they are; the device converts them.
void copyToDevice(const at::Tensor& to, const at::Tensor& from,
                  bool non_blocking) {
  const at::Tensor source = packed(from, from.scalar_type(), from.sizes());
  if (sameBytes(to, source)) {
    copyBytes(to, source, orMemcpyHostToDevice);
  } else {
    at::Tensor landed =
        at::empty(source.sizes(), to.options().dtype(source.scalar_type()));
    copyBytes(landed, source, orMemcpyHostToDevice);
    copyOnDevice(to, landed);
  }
  if (isPinned(source.const_data_ptr()))
    keepUntilDone(source, to.device(), non_blocking);
}

// [operators.copy.to-host] The device converts first, so that fewer bytes may go over.
void copyToHost(const at::Tensor& to, const at::Tensor& from,
                bool non_blocking) {
  const at::Tensor source = packed(from, to.scalar_type(), to.sizes());
  const bool direct = to.is_contiguous() && !to.is_conj() && !to.is_neg();
  const at::Tensor landed = direct ? to : at::empty(to.sizes(), to.options());
  copyBytes(landed, source, orMemcpyDeviceToHost);
  keepUntilDone(landed, from.device(), non_blocking && direct);
  if (!direct) at::Tensor(to).copy_(landed);
}

// [operators.copy.peers] Between devices, each side's stream waits for the other's.
void copyBetweenDevices(const at::Tensor& to, const at::Tensor& from) {
  const at::Tensor source = packed(from, to.scalar_type(), to.sizes());
  const c10::Stream reads = currentStream(from.device().index());
  const c10::Stream writes = currentStream(to.device().index());
  c10::Event ready(kDeviceType), done(kDeviceType);
  ready.record(reads);
  ready.block(writes);
  // One window shows the memory of all devices, so a view of a peer is as good
  // as any.
  check(launch(nativeStream(writes), "copy_",
               [to = View(to), from = View(source)] {
                 prepareThread();
                 to.tensor().copy_(from.tensor());
               }));
  done.record(writes);
  done.block(reads);
}

// [operators.copy] Four ways, chosen by where the two tensors are.
at::Tensor copyFrom(const at::Tensor& self, const at::Tensor& dst,
                    bool non_blocking) {
  // Nobody has looked yet: PyTorch hands copies on before it checks them.
  TORCH_CHECK(at::is_expandable_to(self.sizes(), dst.sizes()),
              "copy_ cannot broadcast a tensor of ", self.sizes(),
              " to one of ", dst.sizes(), ".");
  at::assert_no_internal_overlap(dst);
  if (dst.numel() == 0) return dst;
  if (self.is_cpu()) {
    copyToDevice(dst, self, non_blocking);
  } else if (dst.is_cpu()) {
    copyToHost(dst, self, non_blocking);
  } else if (self.device() == dst.device()) {
    copyOnDevice(dst, self);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(
        self.device().type() == kDeviceType &&
            dst.device().type() == kDeviceType,
        "openreg copies between openreg devices and the CPU, not from ",
        self.device(), " to ", dst.device(), "; go through the CPU.");
    copyBetweenDevices(dst, self);
  }
  return dst;
}

at::Tensor copyFromAndResize(const at::Tensor& self, const at::Tensor& dst) {
  if (self.sizes() != dst.sizes()) dst.resize_(self.sizes());
  return copyFrom(self, dst, false);
}

// [operators.fill] One value for all elements; a host scalar is carried by value.
at::Tensor& fillScalar(at::Tensor& self, const at::Scalar& value) {
  checkConvertible(value, self.scalar_type());
  launchKernel(
      "fill_", [value](at::Tensor self) { self.fill_(value); }, self);
  return self;
}

at::Tensor& fillTensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK_VALUE(value.dim() == 0,
                    "fill_ takes a tensor of 0 dimensions, not of ",
                    value.dim(), ".");
  launchKernel(
      "fill_",
      [](at::Tensor self, const at::Tensor& value) { self.fill_(value); }, self,
      value);
  return self;
}

at::Tensor& zero(at::Tensor& self) {
  launchKernel(
      "zero_", [](at::Tensor self) { self.zero_(); }, self);
  return self;
}

// [operators.copy.register] Conjugate and negative views reach our copies as they are.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copyFrom);
  m.impl("_copy_from_and_resize", &copyFromAndResize);
  m.impl("fill_.Scalar", &fillScalar);
  m.impl("fill_.Tensor", &fillTensor);
  m.impl("zero_", &zero);
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
