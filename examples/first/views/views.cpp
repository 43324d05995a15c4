// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/EmptyTensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace tiny {

// [first.views.grow] A storage grows by moving to a larger block of the same device.
static void grow(const c10::Storage& storage, size_t bytes) {
  if (bytes <= storage.nbytes()) return;
  const c10::DeviceGuard guard(storage.device());
  c10::DataPtr larger = storage.allocator()->allocate(bytes);
  storage.allocator()->copy_data(larger.get(), storage.data(), storage.nbytes());
  storage.set_data_ptr_noswap(std::move(larger));
  storage.set_nbytes(bytes);
}

// [first.views.resize] A tensor that is resized keeps its storage, unless that is too small.
static const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                                std::optional<at::MemoryFormat> format) {
  auto* tensor = self.unsafeGetTensorImpl();
  if (self.sizes() != size) tensor->set_sizes_contiguous(size);
  if (format) tensor->empty_tensor_restride(*format);
  grow(self.storage(), at::detail::computeStorageNbytesContiguous(size, self.element_size(),
                                                                  self.storage_offset()));
  return self;
}

// [first.views.set] A tensor can be laid over a storage, as `torch.load` and `deepcopy` do.
static at::Tensor& setStorage(at::Tensor& self, at::Storage source, int64_t offset,
                              at::IntArrayRef size, at::IntArrayRef stride) {
  const size_t width = self.element_size();
  grow(source, stride.empty() ? at::detail::computeStorageNbytesContiguous(size, width, offset)
                              : at::detail::computeStorageNbytes(size, stride, width, offset));
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

static at::Tensor& setWhole(at::Tensor& self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.element_size());
  return setStorage(self, std::move(source), 0, {elements}, {1});
}

// [first.views.register] PyTorch's own view functions move no byte, so they serve every device.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("view", &at::native::view);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &setWhole);
  m.impl("set_.source_Storage_storage_offset", &setStorage);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("_has_compatible_shallow_copy_type",
         [](const at::Tensor& to, const at::Tensor& from) { return to.layout() == from.layout(); });
}

// [-]
}  // namespace tiny
