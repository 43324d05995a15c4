// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/view.h"
#include "common/openreg/launch.h"

#include <ATen/ops/from_blob.h>

#include <cstring>

namespace openreg {

// [operators.view.capture] On the host: addresses and numbers, no data but a host scalar's.
View::View(const at::Tensor& tensor) : defined_(tensor.defined()) {
  if (!defined_) return;
  dtype_ = tensor.scalar_type();
  sizes_ = tensor.sizes();
  strides_ = tensor.strides();
  conj_ = tensor.is_conj();
  neg_ = tensor.is_neg();
  wrapped_number_ = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  on_host_ = tensor.is_cpu();
  if (on_host_) {
    TORCH_CHECK(tensor.numel() == 1,
                "A kernel takes one number from the host, not a tensor of ",
                tensor.numel(), " elements.");
    std::memcpy(scalar_, tensor.const_data_ptr(), tensor.element_size());
  } else {
    data_ = tensor.data_ptr();
  }
}

// [operators.view.use] On the device: a CPU tensor over the same bytes, which owns nothing.
at::Tensor View::tensor() const {
  if (!defined_) return {};
  void* data = on_host_ ? const_cast<std::byte*>(scalar_) : onDevice(data_);
  at::Tensor tensor =
      at::from_blob(data, sizes_, strides_, at::TensorOptions(dtype_));
  tensor._set_conj(conj_);
  tensor._set_neg(neg_);
  if (wrapped_number_) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// [-]
}  // namespace openreg
