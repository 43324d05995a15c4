// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/hooks/storage/storage.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_nested_tensor_size_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

namespace openreg {
namespace {

using Sizes = at::IntArrayRef;

// [operators.empty] Every tensor begins here, with memory from our allocator on the requested device.
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void checkOptions(std::optional<at::Device> device,
                  std::optional<bool> pin_memory) {
  TORCH_CHECK_VALUE(!device || device->type() == kDeviceType,
                    "openreg cannot allocate on ", *device,
                    "; it allocates on openreg devices only.");
  TORCH_CHECK(!pin_memory || !*pin_memory,
              "Memory of an openreg device cannot be pinned; pin the CPU "
              "tensor instead.");
}

/// Whether `torch.use_deterministic_algorithms` asks for new memory to be
/// filled with NaN or the largest number. Otherwise it keeps what its last
/// owner wrote.
bool fillsNewMemory() {
  const at::Context& context = at::globalContext();
  return C10_UNLIKELY(context.deterministicAlgorithms() &&
                      context.deterministicFillUninitializedMemory());
}

at::Tensor filledIfAsked(at::Tensor tensor) {
  if (fillsNewMemory()) at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

// [operators.empty.two] Two factories: one takes sizes, the other takes strides as well.
at::Tensor emptyMemoryFormat(Sizes size, std::optional<at::ScalarType> dtype,
                             std::optional<at::Layout>,
                             std::optional<at::Device> device,
                             std::optional<bool> pin_memory,
                             std::optional<at::MemoryFormat> memory_format) {
  checkOptions(device, pin_memory);
  DeviceScope scope(device);
  return filledIfAsked(at::detail::empty_generic(
      size, &allocator(), kKeys, c10::dtype_or_default(dtype), memory_format));
}

at::Tensor emptyStrided(Sizes size, Sizes stride,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout>,
                        std::optional<at::Device> device,
                        std::optional<bool> pin_memory) {
  checkOptions(device, pin_memory);
  DeviceScope scope(device);
  return filledIfAsked(at::detail::empty_strided_generic(
      size, stride, &allocator(), kKeys, c10::dtype_or_default(dtype)));
}

// [operators.factories.zero] Zeros without memory, which autograd uses for gradients that are zero whatever the input.
at::Tensor efficientZeroTensor(Sizes size, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout>,
                               std::optional<at::Device> device,
                               std::optional<bool>) {
  at::native::ZeroTensorAllocator allocator(
      {kDeviceType, resolveDevice(device ? device->index() : -1)});
  return at::detail::empty_generic(
      size, &allocator,
      c10::DispatchKeySet(
          {c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor}),
      c10::dtype_or_default(dtype), std::nullopt);
}

// [operators.resize] A tensor grows through `resizeStorage`, because PyTorch's own `resize_` would call memcpy on device memory.
const at::Tensor& resize(const at::Tensor& self, Sizes size,
                         std::optional<at::MemoryFormat> memory_format) {
  TORCH_CHECK_VALUE(
      memory_format != at::MemoryFormat::Preserve,
      "resize_ cannot preserve a memory format; leave it out, or name one.");
  // A tensor that already has these sizes keeps its strides.
  if (self.sizes() == size && !memory_format) return self;
  const size_t before = self.storage().nbytes();
  const size_t bytes = at::detail::computeStorageNbytesContiguous(
      size, self.element_size(), self.storage_offset());
  if (bytes > before) resizeStorage(self.storage(), bytes);
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(size);
  if (memory_format) tensor->empty_tensor_restride(*memory_format);
  if (fillsNewMemory()) {
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(before));
  }
  return self;
}

// [operators.set] We grow the new storage first, so that PyTorch's `set_` has nothing left to resize.
at::Tensor& setStorageOffset(at::Tensor& self, at::Storage source,
                             int64_t offset, Sizes size, Sizes stride) {
  TORCH_CHECK(source.device() == self.device(), "The storage is on ",
              source.device(), ", the tensor on ", self.device(),
              "; they must be on one device.");
  TORCH_CHECK(offset >= 0, "A tensor cannot begin ", -offset,
              " elements before its storage.");
  const size_t bytes = stride.empty()
                           ? at::detail::computeStorageNbytesContiguous(
                                 size, self.element_size(), offset)
                           : at::detail::computeStorageNbytes(
                                 size, stride, self.element_size(), offset);
  if (bytes > source.nbytes()) resizeStorage(source, bytes);
  return at::native::set_storage_cpu_(self, std::move(source), offset, size,
                                      stride);
}

at::Tensor& setStorage(at::Tensor& self, at::Storage source) {
  const int64_t elements =
      static_cast<int64_t>(source.nbytes() / self.element_size());
  return setStorageOffset(self, std::move(source), 0, elements, {});
}

at::Tensor& setEmpty(at::Tensor& self) {
  DeviceScope scope(self.device().index());
  at::Storage none(at::Storage::use_byte_size_t(), 0, &allocator(), true);
  return setStorage(self, std::move(none));
}

// [operators.scalar] `item()` must wait, because Python needs the number.
at::Scalar localScalarDense(const at::Tensor& self) {
  return at::_local_scalar_dense(self.cpu());
}

// [operators.shallow-copy] `module.to("openreg")` keeps its parameters only if a tensor may take over another's contents.
/// Whether `self` may take over the storage and sizes of `from`. If not,
/// `module.to` makes new parameters, and an optimizer that was made before
/// keeps the old ones.
bool hasCompatibleShallowCopyType(const at::Tensor& self,
                                  const at::Tensor& from) {
  return self.layout() == at::kStrided && from.layout() == at::kStrided;
}

// [operators.record-stream] Memory that a second stream uses must not be reused before that stream is done.
void recordStream(at::Tensor& self, at::Stream stream) {
  allocator().recordStream(self.storage().data_ptr(), stream);
}

// [operators.minimal.register] PyTorch's view kernels compute only sizes and strides, so they serve every backend.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &emptyMemoryFormat);
  m.impl("empty_strided", &emptyStrided);
  m.impl("_efficientzerotensor", &efficientZeroTensor);
  m.impl("resize_", &resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("set_.source_Storage", &setStorage);
  m.impl("set_.source_Storage_storage_offset", &setStorageOffset);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("set_", &setEmpty);
  m.impl("is_set_to", &at::native::is_set_to);
  m.impl("_local_scalar_dense", &localScalarDense);
  m.impl("_has_compatible_shallow_copy_type", &hasCompatibleShallowCopyType);
  m.impl("record_stream", &recordStream);
}

// [operators.minimal.nested] Autograd asks a nested tensor for its sizes in a constructor that must not throw.
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_nested_tensor_size", &at::native::_nested_tensor_size);
}

// [-]
}  // namespace
}  // namespace openreg
