// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/checks/indices.h"

#include <ATen/DimVector.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace openreg {
namespace {

// [operators.indices.together] Indices are expanded to a common size, in which the count of a mask adapts to the others.
constexpr int64_t kOfMask = -1;

/// Nothing if the sizes do not fit each other.
std::optional<at::DimVector> expanded(at::IntArrayRef one,
                                      at::IntArrayRef other) {
  if (one.size() < other.size()) std::swap(one, other);
  at::DimVector sizes(one);
  for (size_t i = 1; i <= other.size(); ++i) {
    int64_t& size = sizes[sizes.size() - i];
    const int64_t wanted = other[other.size() - i];
    if (size == 1 || (size == kOfMask && wanted != 1)) {
      size = wanted;
    } else if (size != wanted && wanted != 1 && wanted != kOfMask) {
      return std::nullopt;
    }
  }
  return sizes;
}

// [operators.indices.apart] Indices that do not fit each other are refused too, unless one of them is a mask.
/// Nothing if a mask is among the indices, because only the device knows its
/// count. @throws IndexError otherwise.
std::nullopt_t refuseTogether(const std::vector<at::Tensor>& indices) {
  if (std::any_of(indices.begin(), indices.end(), isMask)) return std::nullopt;
  std::ostringstream shapes;
  for (const at::Tensor& index : indices)
    if (index.defined())
      shapes << (shapes.tellp() > 0 ? ", " : "") << index.sizes();
  TORCH_CHECK_INDEX(false,
                    "shape mismatch: indexing tensors could not be broadcast "
                    "together with shapes ",
                    shapes.str());
}

// [operators.indices.mask] A mask stands for as many indices as it has dimensions, and has the sizes of these.
void checkMask(const at::Tensor& mask, const at::Tensor& self, int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    TORCH_CHECK_INDEX(mask.size(d) == self.size(first + d),
                      "The shape of the mask ", mask.sizes(), " at index ", d,
                      " does not match the shape of the indexed tensor ",
                      self.sizes(), " at index ", first + d);
  }
}

// [operators.indices.selected] Adjacent indices put their common size in their place, others put it first.
std::optional<at::DimVector> selectedSizes(
    const at::Tensor& self, const std::vector<at::Tensor>& indices) {
  at::DimVector sizes;
  std::optional<at::DimVector> together = at::DimVector();
  std::optional<size_t> first, last;
  int64_t dim = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const at::Tensor& index = indices[i];
    const bool is_mask = isMask(index);
    const int64_t dims = is_mask ? index.dim() : 1;
    if (dims == 0) return std::nullopt;
    const int64_t size = self.size(dim);  // Throws if there are too many.
    if (!index.defined()) {
      sizes.push_back(size);
    } else {
      if (is_mask) checkMask(index, self, dim);
      together = expanded(*together,
                          is_mask ? at::IntArrayRef(kOfMask) : index.sizes());
      if (!together) return refuseTogether(indices);
      const bool adjacent = !last || *last + 1 == i;
      first = adjacent ? first.value_or(sizes.size()) : 0;
      last = i;
    }
    dim += dims;
  }
  sizes.append(self.sizes().begin() + dim, self.sizes().end());
  sizes.insert(sizes.begin() + first.value_or(0), together->begin(),
               together->end());
  return sizes;
}

// [operators.indices.fit] Values may lack the first dimensions, and a size of one fits every size.
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

// [operators.indices.check] The sentences are those of PyTorch's kernel.
void checkIndexPut(const at::Tensor& self,
                   const std::vector<at::Tensor>& indices,
                   const at::Tensor& values) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(),
                    " (got ", indices.size(), ")");
  const auto selected = selectedSizes(self, indices);
  if (!selected || fit(values.sizes(), *selected)) return;
  const bool has_mask =
      std::find(selected->begin(), selected->end(), kOfMask) != selected->end();
  // With a mask, one value may have any number of dimensions.
  if (has_mask && values.numel() == 1) return;
  TORCH_CHECK(false, "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ",
              at::IntArrayRef(*selected),
              has_mask ? ", where -1 is what a mask selects." : "");
}

// [-]
}  // namespace openreg
