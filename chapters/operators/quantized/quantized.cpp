// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/operators/quantized/quantized.h"
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/NativeFunctions.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/_empty_per_channel_affine_quantized.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

#include <algorithm>

namespace openreg {

// [operators.quantized.alias] The dense tensor has an integral dtype and no quantizer, so all our copies and views accept it.
at::Tensor integersOf(const at::Tensor& quantized) {
  const at::ScalarType type = quantized.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      type == at::kQInt8 || type == at::kQUInt8 || type == at::kQInt32,
      "openreg has no quantized tensors of ", type,
      "; use qint8, quint8 or qint32.");
  const auto key = quantized.is_cpu() ? c10::DispatchKey::CPU
                                      : c10::DispatchKey::PrivateUse1;
  at::Tensor integers = at::detail::make_tensor<at::TensorImpl>(
      at::Storage(quantized.storage()), c10::DispatchKeySet(key),
      c10::scalarTypeToTypeMeta(at::toUnderlying(type)));
  at::TensorImpl* impl = integers.unsafeGetTensorImpl();
  impl->set_storage_offset(quantized.storage_offset());
  impl->set_sizes_and_strides(quantized.sizes(), quantized.strides());
  return integers;
}

void checkEngine(const torch::jit::Stack& arguments) {
  const auto is_host = [](const c10::IValue& argument) {
    return argument.isDevice() && argument.toDevice().is_cpu();
  };
  TORCH_CHECK_NOT_IMPLEMENTED(
      at::globalContext().qEngine() != at::QEngine::QNNPACK ||
          std::any_of(arguments.begin(), arguments.end(), is_host),
      "PyTorch's engine qnnpack makes quantized tensors on the CPU only; for "
      "openreg choose another one, such as torch.backends.quantized.engine = "
      "\"x86\".");
}

namespace {

// [operators.quantized.copy] A copy gets the quantizer too, with its scales on the device of the copy.
at::QuantizerPtr quantizerFor(const at::Tensor& to, const at::Tensor& from) {
  if (from.qscheme() == at::kPerTensorAffine)
    return at::make_per_tensor_affine_quantizer(
        from.q_scale(), from.q_zero_point(), from.scalar_type());
  return at::make_per_channel_affine_quantizer(
      from.q_per_channel_scales().to(to.device()),
      from.q_per_channel_zero_points().to(to.device()),
      from.q_per_channel_axis(), from.scalar_type());
}

at::Tensor copyQuantized(const at::Tensor& from, const at::Tensor& to,
                         bool non_blocking) {
  TORCH_CHECK(to.is_quantized(),
              "Copying from quantized Tensor to non-quantized Tensor is not "
              "allowed, please use dequantize to get a float Tensor from a "
              "quantized Tensor");
  if (!from.is_quantized()) {
    TORCH_CHECK(from.scalar_type() == at::kFloat,
                "Quantized copy only works with kFloat as source Tensor");
    const DeviceScope scope(to.device().index());
    const at::Tensor there = from.to(to.device()).expand(to.sizes());
    const at::Tensor same =
        at::get_qtensorimpl(to)->quantizer()->quantize(there);
    return copyQuantized(same, to, non_blocking);
  }
  TORCH_CHECK(to.scalar_type() == from.scalar_type(),
              "Quantized Copy requires matching dtypes between source and "
              "destination, got ",
              to.scalar_type(), " and ", from.scalar_type());
  TORCH_CHECK(to.qscheme() == from.qscheme(),
              "Quantized Copy only works with same qscheme");
  at::get_qtensorimpl(to)->set_quantizer_(quantizerFor(to, from));
  integersOf(to).copy_(integersOf(from), non_blocking);
  return to;
}

// [operators.quantized.integers.operators] Making a quantized tensor from integers, or integers from it, only copies integers.
at::Tensor intRepr(const at::Tensor& self) {
  const at::Tensor integers = integersOf(self);
  return integers.clone(self.suggest_memory_format());
}

at::Tensor makePerTensor(const at::Tensor& self, double scale,
                         int64_t zero_point) {
  at::Tensor made = at::_empty_affine_quantized(
      self.sizes(), self.options().dtype(at::toQIntType(self.scalar_type())),
      scale, zero_point);
  integersOf(made).copy_(self);
  return made;
}

at::Tensor makePerChannel(const at::Tensor& self, const at::Tensor& scales,
                          const at::Tensor& zero_points, int64_t axis) {
  at::Tensor made = at::_empty_per_channel_affine_quantized(
      self.sizes(), scales, zero_points, axis,
      self.options().dtype(at::toQIntType(self.scalar_type())));
  integersOf(made).copy_(self);
  return made;
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  return other.is_quantized() && self.sizes() == other.sizes() &&
         at::get_qtensorimpl(self)->quantizer()->equalTo(
             at::get_qtensorimpl(other)->quantizer()) &&
         at::equal(integersOf(self), integersOf(other));
}

}  // namespace

// [operators.quantized.register] PyTorch's own functions serve the other operators: they allocate through the device's allocator and compute through stubs.
TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  m.impl("_copy_from", &copyQuantized);
  m.impl("int_repr", &intRepr);
  m.impl("equal", &equal);
  registerTheirs<c10::DispatchKey::QuantizedCPU,
                 &makeByTheirs<c10::DispatchKey::QuantizedCPU>>(
      m,
      "_empty_affine_quantized _empty_per_channel_affine_quantized "
      "empty_quantized empty_like clone");
  registerTheirs<c10::DispatchKey::QuantizedCPU>(
      m,
      "qscheme q_scale q_zero_point q_per_channel_scales "
      "q_per_channel_zero_points q_per_channel_axis view "
      "set_.source_Storage_storage_offset as_strided unfold unsqueeze "
      "squeeze squeeze.dim squeeze.dims");
}

// [operators.quantized.register.dense] Two take a dense tensor, so they are registered at its key.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_make_per_tensor_quantized_tensor", &makePerTensor);
  m.impl("_make_per_channel_quantized_tensor", &makePerChannel);
}

// [-]
}  // namespace openreg
