// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

namespace openreg {

// [operators.fused.rows] Rows are addressed by strides, so a broadcast mask is never materialized.
template <class T>
class Row {
 public:
  /// Row `row` of all rows along the last dimension, in the order of indices.
  Row(const at::Tensor& tensor, int64_t row)
      : data_(tensor.data_ptr<T>()), stride_(tensor.stride(-1)) {
    for (int64_t d = tensor.dim() - 2; d >= 0; row /= tensor.size(d--)) {
      data_ += row % tensor.size(d) * tensor.stride(d);
    }
  }
  /// Not checked.
  T& operator[](int64_t i) const { return data_[i * stride_]; }

  /// Whether `data()` may be used as an array.
  bool isDense() const { return stride_ == 1; }
  /// The first element.
  T* data() const { return data_; }

 private:
  T* data_;
  int64_t stride_;
};

/// Calls `body(begin, end)` for blocks of rows that fit the processor's cache,
/// on all threads of the device.
template <class Body>
void forEachBlock(const at::Tensor& tensor, Body body) {
  if (tensor.numel() == 0) return;
  const int64_t rows = tensor.numel() / tensor.size(-1);
  const int64_t block = std::max<int64_t>(1, 8192 / tensor.size(-1));
  const int64_t blocks = (rows + block - 1) / block;
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      body(i * block, std::min(rows, (i + 1) * block));
    }
  });
}

// [-]
}  // namespace openreg
