// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/library/unstructured_table.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/library/library_table.h"

#include <algorithm>
#include <string_view>

namespace openreg {

using c10::DispatchKey;

// [operators.unstructured.table.size] A Meta kernel knows the size unless it depends on the data.
SizeSource sizeSource(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto& results = schema.returns();
  const bool only_tensors =
      std::all_of(results.begin(), results.end(), [](const auto& result) {
        return *result.type() == *c10::TensorType::get();
      });
  if (mayRefuse(op)) return SizeSource::result;
  if (only_tensors && op.hasKernelForDispatchKey(DispatchKey::Meta) &&
      !op.hasTag(at::Tag::dynamic_output_shape)) {
    return SizeSource::meta;
  }
  const bool in_place =
      std::all_of(results.begin(), results.end(),
                  [](const auto& result) { return result.alias_info(); });
  const auto& arguments = schema.arguments();
  return in_place && !arguments.back().is_out() ? SizeSource::arguments
                                                : SizeSource::result;
}

// [operators.unstructured.table.excluded] Schemas and names show which operators a view cannot serve or a CPU kernel cannot replace.
namespace {

/// Names of sparse, nested and quantized operators, of PyTorch's own tests, and
/// of mixed precision.
bool hasUnsupportedName(std::string_view name) {
  for (std::string_view word :
       {"sparse", "nested", "jagged", "quantize", "mkldnn", "int4", "_4bit",
        "_test_", "_foobar", "from_file", "_amp_", "spdiags", "sspaddmm"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

bool isSupported(const c10::OperatorHandle& op) {
  return fallbackRefusal(op).empty() && !hasUnsupportedName(op.schema().name());
}

}  // namespace

// [operators.unstructured.table.build] These operators have a CPU kernel, no kernel of ours, and are not composed before autograd.
std::vector<c10::OperatorHandle> unstructured() {
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorHandle& op : atenOperators()) {
    const auto has = [&](DispatchKey key) {
      return op.hasKernelForDispatchKey(key);
    };
    if (has(DispatchKey::CPU) && !has(DispatchKey::PrivateUse1) &&
        !has(DispatchKey::CompositeImplicitAutograd) &&
        !has(DispatchKey::CompositeExplicitAutogradNonFunctional) &&
        isSupported(op)) {
      found.push_back(op);
    }
  }
  return found;
}

// [-]
}  // namespace openreg
