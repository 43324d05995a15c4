// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/tensors.h"
#include "torch_openreg/examples/compiled/device/arguments.h"
#include "torch_openreg/examples/compiled/embedded.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [compiled.tiled.storage] The tiles are the context of the storage's DataPtr; the address that PyTorch sees is null.
struct Tiles {
  at::DataPtr memory;
  int64_t rows, columns;
};

void deleteTiles(void* tiles) { delete static_cast<Tiles*>(tiles); }

/// Null unless the storage of `tensor` is tiled.
const Tiles* tilesOf(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  return tensor.storage().data_ptr().cast_context<Tiles>(&deleteTiles);
}

int64_t padded(int64_t size) { return (size + kTile - 1) / kTile * kTile; }

// [compiled.tiled.pack] The new tensor has the sizes and strides of the plain one, and a storage that has other bytes.
at::Tensor pack(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2 && self.scalar_type() == at::kFloat,
              "Only float matrices have tiles; this tensor is ",
              self.scalar_type(), " of ", self.sizes(), ".");
  const at::Tensor plain = self.contiguous();
  checkMemory(plain);
  const DeviceScope scope(plain.device().index());
  const int64_t rows = plain.size(0), columns = plain.size(1);
  const size_t bytes = padded(rows) * padded(columns) * sizeof(float);
  auto* tiles = new Tiles{allocator().allocate(bytes), rows, columns};
  at::DataPtr hidden(nullptr, tiles, &deleteTiles, plain.device());
  if (bytes) {
    check(orMemsetAsync(tiles->memory.get(), 0, bytes,
                        currentNativeStream(plain.device().index())));
    launchEmbedded(
        plain.device().index(), "pack",
        TileArguments{plain.mutable_data_ptr<float>(),
                      static_cast<float*>(tiles->memory.get()), rows, columns});
  }
  at::Tensor packed = at::detail::make_tensor<at::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(hidden)),
      plain.key_set(), plain.dtype());
  packed.unsafeGetTensorImpl()->set_sizes_contiguous(plain.sizes());
  return packed;
}

// [compiled.tiled.unpack] The strides of a view describe the plain layout, so they fit the storage that is unpacked.
at::Tensor unpack(const at::Tensor& self) {
  const Tiles* tiles = tilesOf(self);
  if (!tiles) return self.clone();
  at::Tensor plain = at::empty({tiles->rows, tiles->columns}, self.options());
  if (plain.numel()) {
    launchEmbedded(self.device().index(), "unpack",
                   TileArguments{plain.mutable_data_ptr<float>(),
                                 static_cast<float*>(tiles->memory.get()),
                                 tiles->rows, tiles->columns});
  }
  return plain.as_strided(self.sizes(), self.strides(), self.storage_offset());
}

// [compiled.tiled.product] A kernel that reads tiles must know that the tensor is the whole storage, and not a view of a part.
at::Tensor product(const at::Tensor& matrix, const at::Tensor& vector) {
  const Tiles* tiles = tilesOf(matrix);
  TORCH_CHECK(matrix.dim() == 2 && vector.dim() == 1 &&
                  matrix.size(1) == vector.size(0) &&
                  matrix.device() == vector.device() &&
                  vector.scalar_type() == at::kFloat && vector.is_contiguous(),
              "A product needs a matrix and a float vector that fit; they are ",
              matrix.sizes(), " and ", vector.sizes(), ".");
  if (!tiles || !matrix.is_contiguous() || matrix.storage_offset() != 0 ||
      matrix.size(0) != tiles->rows || matrix.size(1) != tiles->columns)
    return (tiles ? unpack(matrix) : matrix).mv(vector);
  checkMemory(vector);
  at::Tensor out = at::empty({tiles->rows}, vector.options());
  if (out.numel() == 0) return out;
  launchEmbedded(
      matrix.device().index(), "tiledProduct",
      TiledProductArguments{out.mutable_data_ptr<float>(),
                            static_cast<const float*>(tiles->memory.get()),
                            vector.const_data_ptr<float>(), tiles->rows,
                            tiles->columns});
  return out;
}

// [compiled.tiled.register] Programs ask for the layout, as `npu_format_cast` does; no operator of PyTorch chooses it.
TORCH_LIBRARY(tiled, m) {
  m.def("pack(Tensor self) -> Tensor");
  m.def("unpack(Tensor self) -> Tensor");
  m.def("mv(Tensor matrix, Tensor vector) -> Tensor");
  m.def("is_packed(Tensor self) -> bool");
}

TORCH_LIBRARY_IMPL(tiled, PrivateUse1, m) {
  m.impl("pack", &pack);
  m.impl("unpack", &unpack);
  m.impl("mv", &product);
  m.impl("is_packed",
         [](const at::Tensor& self) { return tilesOf(self) != nullptr; });
}

// [-]
}  // namespace
}  // namespace openreg
