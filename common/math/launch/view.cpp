// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/view.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>

#include <cstring>

namespace openreg {

// [common.view.capture] Capturing reads no data, except the value of a tensor on the host.
View::View(const at::Tensor& tensor, Access access)
    : defined_(tensor.defined()) {
  if (!defined_) return;
  dtype_ = tensor.scalar_type();
  sizes_ = tensor.sizes();
  strides_ = tensor.strides();
  conj_ = tensor.is_conj();
  neg_ = tensor.is_neg();
  wrapped_number_ = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (wrapped_number_) default_dtype_ = c10::get_default_dtype_as_scalartype();
  on_host_ = tensor.is_cpu();
  if (on_host_) {
    TORCH_CHECK(tensor.numel() == 1,
                "A kernel takes one number from the host, not a tensor of ",
                tensor.numel(), " elements.");
    std::memcpy(scalar_, tensor.const_data_ptr(), tensor.element_size());
  } else {
    checkMemory(tensor);
    data_ = tensor.data_ptr();
    announceAccess(tensor, access);
  }
}

// [-]
}  // namespace openreg
