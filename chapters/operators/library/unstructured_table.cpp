// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/library/unstructured_table.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/library/library_table.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

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

// [operators.unstructured.table.excluded] A view describes only dense tensors, so operators with other tensors are excluded.
namespace {

bool isSupported(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string_view> not_dense{
      "aten::_empty_per_channel_affine_quantized",
      "aten::_make_per_channel_quantized_tensor",
      "aten::_make_per_tensor_quantized_tensor",
      "aten::_nested_from_padded",
      "aten::_nested_tensor_from_mask",
      "aten::_spdiags",
      "aten::_to_sparse",
      "aten::_to_sparse_bsc",
      "aten::_to_sparse_bsr",
      "aten::_to_sparse_csc",
      "aten::_to_sparse_csr",
      "aten::dequantize",
      "aten::mkldnn_rnn_layer",
      "aten::mkldnn_rnn_layer_backward",
      "aten::quantize_per_channel",
      "aten::quantize_per_tensor",
      "aten::quantize_per_tensor_dynamic",
      "aten::quantized_gru",
      "aten::quantized_lstm",
      "aten::sspaddmm",
      "aten::to_mkldnn"};
  // Two for the next chapter, and one that an exercise takes off the fallback.
  static const std::unordered_set<std::string_view> left_out{
      "aten::_amp_foreach_non_finite_check_and_unscale_",
      "aten::_amp_update_scale_",
      "aten::fake_quantize_per_tensor_affine_cachemask"};
  const std::string& name = op.schema().name();
  return fallbackRefusal(op).empty() && !not_dense.contains(name) &&
         !left_out.contains(name);
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
