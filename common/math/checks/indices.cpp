// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/checks/indices.h"
#include "torch_openreg/common/math/launch/argument.h"

#include <ATen/DimVector.h>
#include <ATen/native/IndexingUtils.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace openreg {
namespace {

// [common.indices.together] Indices are expanded to a common size. A mask that is the only index has one that the host does not know.
constexpr int64_t kOfMask = -1;

/// @throws IndexError if the sizes do not fit each other.
at::DimVector expanded(at::IntArrayRef one, at::IntArrayRef other,
                       const std::vector<at::Tensor>& indices) {
  if (one.size() < other.size()) std::swap(one, other);
  at::DimVector sizes(one);
  for (size_t i = 1; i <= other.size(); ++i) {
    int64_t& size = sizes[sizes.size() - i];
    const int64_t wanted = other[other.size() - i];
    if (size == 1) size = wanted;
    if (size == wanted || wanted == 1) continue;
    std::ostringstream shapes;
    for (const at::Tensor& index : indices)
      if (index.defined())
        shapes << (shapes.tellp() > 0 ? ", " : "") << index.sizes();
    TORCH_CHECK_INDEX(false,
                      "shape mismatch: indexing tensors could not be broadcast "
                      "together with shapes ",
                      shapes.str());
  }
  return sizes;
}

// [common.indices.selected] Adjacent indices put their common size in their place, others put it first.
at::DimVector selectedSizes(const at::Tensor& self,
                            const std::vector<at::Tensor>& indices) {
  at::DimVector sizes, together;
  std::optional<size_t> first, last;
  int64_t dim = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const at::Tensor& index = indices[i];
    const int64_t size = self.size(dim);  // Throws if there are too many.
    if (!index.defined()) {
      sizes.push_back(size);
      ++dim;
      continue;
    }
    const bool is_mask = isMask(index);
    dim += is_mask ? index.dim() : 1;
    together = expanded(
        together, is_mask ? at::IntArrayRef(kOfMask) : index.sizes(), indices);
    const bool adjacent = !last || *last + 1 == i;
    first = adjacent ? first.value_or(sizes.size()) : 0;
    last = i;
  }
  sizes.append(self.sizes().begin() + dim, self.sizes().end());
  sizes.insert(sizes.begin() + first.value_or(0), together.begin(),
               together.end());
  return sizes;
}

// [common.indices.fit] Values may lack the first dimensions, and a size of one fits every size.
bool fit(at::IntArrayRef values, at::IntArrayRef selected) {
  return values.size() <= selected.size() &&
         std::equal(values.rbegin(), values.rend(), selected.rbegin(),
                    [](int64_t given, int64_t wanted) {
                      return given == wanted || given == 1 || wanted == kOfMask;
                    });
}

}  // namespace

bool isMask(const at::Tensor& index) {
  return index.defined() &&
         (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
}

// [common.indices.masks] A mask stands for as many indices as it has dimensions, and has the sizes of these.
/// Whether `index` is a mask that selects all or nothing.
static bool isScalarMask(const at::Tensor& index) {
  return isMask(index) && index.dim() == 0;
}

static void checkMask(const at::Tensor& mask, const at::Tensor& self,
                      int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    TORCH_CHECK_INDEX(mask.size(d) == self.size(first + d),
                      "The shape of the mask ", mask.sizes(), " at index ", d,
                      " does not match the shape of the indexed tensor ",
                      self.sizes(), " at index ", first + d);
  }
}

void checkIndices(const at::Tensor& self,
                  const std::vector<at::Tensor>& indices) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(),
                    " (got ", indices.size(), ")");
  int64_t dim = 0;
  for (const at::Tensor& index : indices) {
    TORCH_CHECK_INDEX(
        !index.defined() || isMask(index) || index.scalar_type() == at::kLong ||
            index.scalar_type() == at::kInt,
        "tensors used as indices must be long, int, byte or bool tensors");
    if (isMask(index)) checkMask(index, self, dim);
    dim += isMask(index) ? index.dim() : 1;
  }
}

// [common.indices.count] All indices of a call are equally many, so a mask beside another index is counted. The host waits for that.
std::vector<at::Tensor> countMasks(const std::vector<at::Tensor>& indices) {
  const bool has_mask = std::any_of(indices.begin(), indices.end(), isMask);
  const auto defined =
      std::count_if(indices.begin(), indices.end(),
                    [](const at::Tensor& index) { return index.defined(); });
  if (!has_mask || defined == 1) return indices;
  std::vector<at::Tensor> counted;
  for (const at::Tensor& index : indices) {
    if (!isMask(index) || isScalarMask(index)) {
      counted.push_back(index);
      continue;
    }
    for (at::Tensor& numbers : index.nonzero().unbind(1))
      counted.push_back(std::move(numbers));
  }
  return counted;
}

// [common.indices.check] The sentences are those of PyTorch's kernel.
void checkIndexPut(const at::Tensor& self,
                   const std::vector<at::Tensor>& indices,
                   const at::Tensor& values) {
  if (std::any_of(indices.begin(), indices.end(), isScalarMask)) return;
  const at::DimVector selected = selectedSizes(self, indices);
  if (fit(values.sizes(), selected)) return;
  const bool has_mask = std::any_of(indices.begin(), indices.end(), isMask);
  // With a mask, one value may have any number of dimensions.
  if (has_mask && values.numel() == 1) return;
  TORCH_CHECK(false, "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ",
              at::IntArrayRef(selected),
              has_mask ? ", where -1 is what a mask selects." : "");
}

// [common.indices.prepare] Reading elements needs the number of each mask; writing them needs it only beside other indices.
static c10::List<std::optional<at::Tensor>> asList(
    const std::vector<at::Tensor>& indices) {
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& index : indices)
    list.push_back(index.defined() ? std::optional(index) : std::nullopt);
  return list;
}

void prepareIndices(const c10::OperatorHandle& op,
                    torch::jit::Stack& arguments) {
  if (arguments.size() < 2 || !arguments[1].isOptionalTensorList()) return;
  const std::string& name = op.schema().name();
  const at::Tensor self = arguments[0].toTensor();
  if (name == "aten::index") {
    const auto indices = tensorsInList(arguments[1]);
    if (!std::any_of(indices.begin(), indices.end(), isMask)) return;
    arguments[1] = asList(
        at::native::expandTensors(self, arguments[1].toOptionalTensorList()));
  } else if (name == "aten::_index_put_impl_") {
    // PyTorch has no Meta function that checks these sizes.
    checkIndices(self, tensorsInList(arguments[1]));
    const auto counted = countMasks(tensorsInList(arguments[1]));
    checkIndexPut(self, counted, arguments[2].toTensor());
    arguments[1] = asList(counted);
  }
}

// [-]
}  // namespace openreg
