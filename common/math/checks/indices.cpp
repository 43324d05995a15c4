// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/math/plan/prediction.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/DimVector.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

namespace openreg {

// [common.indices.masks] A mask stands for as many indices as it has dimensions; of how many elements, only the device knows.
bool isMask(const at::Tensor& index) {
  return index.defined() &&
         (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
}

/// `indices` for a Meta function. A mask, which is alone, selects as many
/// elements as there are values for it; `place` is where.
static Indices withoutMasks(const at::Tensor& self, const Indices& indices,
                            const at::Tensor& values,
                            std::optional<size_t>& place) {
  Indices numbers;
  for (size_t i = 0; i < indices.size(); ++i) {
    const at::Tensor index = indices.get(i).value_or(at::Tensor());
    if (!isMask(index)) {
      numbers.push_back(index);
      continue;
    }
    place = i;
    const int64_t after = self.dim() - static_cast<int64_t>(i) - index.dim();
    int64_t count = values.dim() > after ? values.size(-1 - after) : 1;
    if (index.numel() == 0) count = 0;
    for (int64_t d = 0; d < index.dim(); ++d)
      numbers.push_back(at::detail::empty_meta({count}, at::kLong));
  }
  return numbers;
}

// [common.indices.check] PyTorch has no Meta function for the assignment, but one for reading the same elements.
static void checkIndexPut(const at::Tensor& self, const Indices& indices,
                          const at::Tensor& values) {
  static const auto read =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::index", "Tensor");
  std::optional<size_t> mask;
  const Indices numbers = withoutMasks(self, indices, values, mask);
  at::DimVector sizes(predict(read, {self, numbers})[0].toTensor().sizes());
  // With a mask, one value may have any number of dimensions.
  if (at::is_expandable_to(values.sizes(), sizes) ||
      (mask && values.numel() == 1))
    return;
  if (mask) sizes[*mask] = -1;
  TORCH_CHECK(false, "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ",
              at::IntArrayRef(sizes),
              mask ? ", where -1 is what a mask selects." : "");
}

// [common.indices.prepare] Reading needs the number of elements of each mask. Writing needs it only beside other indices, which are equally many.
void prepareIndices(const c10::OperatorHandle& op,
                    torch::jit::Stack& arguments) {
  const std::string& name = op.schema().name();
  const bool reads = name == "aten::index";
  if (!reads && name != "aten::_index_put_impl_") return;
  const at::Tensor self = arguments[0].toTensor();
  const auto given = tensorsInList(arguments[1]);
  const Indices indices = arguments[1].toOptionalTensorList();
  if (std::any_of(given.begin(), given.end(), isMask)) {
    // PyTorch's question, of one number: it also compares the mask's sizes.
    const bool alone = std::get<0>(at::native::canDispatchToMaskedFill(
        self, indices, at::zeros({}, at::kFloat)));
    if (reads || !alone) {
      const auto numbers = at::native::expandTensors(self, indices);
      // As on the CPU: throws if they are too many now.
      if (std::ssize(numbers) > self.dim()) self.size(self.dim());
      arguments[1] = at::native::toListOfOptionalTensors(numbers);
    }
  }
  // A mask without dimensions selects all or nothing.
  const bool is_whole =
      given.size() == 1 && isMask(given[0]) && given[0].dim() == 0;
  if (!reads && !is_whole)
    checkIndexPut(self, arguments[1].toOptionalTensorList(),
                  arguments[2].toTensor());
}

// [-]
}  // namespace openreg
