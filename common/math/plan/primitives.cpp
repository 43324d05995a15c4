// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/primitives.h"
#include "torch_openreg/common/tensors.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

namespace openreg::math {

using c10::DispatchKey;

namespace {

// [common.math.operators.all] A name without a schema is skipped: it has a kernel but no definition.
std::vector<c10::OperatorHandle> findOperators() {
  std::vector<c10::OperatorHandle> found;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.getNamespace() != "aten") continue;
    if (auto op = dispatcher.findSchema(name)) found.push_back(*op);
  }
  return found;
}

// [common.math.forms] Two forms of an operator have the same inputs; the outputs come last.
bool haveSameInputs(const c10::FunctionSchema& derived,
                    const c10::FunctionSchema& with_out) {
  const auto& few = derived.arguments();
  const auto& more = with_out.arguments();
  return few.size() < more.size() && more[few.size()].is_out() &&
         std::equal(few.begin(), few.end(), more.begin(),
                    [](const auto& one, const auto& other) {
                      return *one.type() == *other.type();
                    });
}

// [common.math.failures] Some operators report numerical failures, and most of these have an argument that asks for it.
/// Whether the CPU's kernel reports a failure such as a singular matrix, or
/// reads the deterministic mode to refuse.
bool mayFail(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> others{
      "aten::_linalg_eigh",
      "aten::_linalg_svd",
      "aten::cholesky_inverse",
      "aten::max_unpool2d",
      "aten::max_unpool3d",
      "aten::put_",
      "aten::_validate_compressed_sparse_indices"};
  return op.schema().argumentIndexWithName("check_errors") ||
         others.contains(op.schema().name());
}

// [common.math.sizes] A Meta kernel knows the size unless it depends on the data.
SizesAre sizesOf(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto& results = schema.returns();
  const bool only_tensors =
      std::all_of(results.begin(), results.end(), [](const auto& result) {
        return *result.type() == *c10::TensorType::get();
      });
  if (mayFail(op)) return SizesAre::computed;
  if (only_tensors && op.hasKernelForDispatchKey(DispatchKey::Meta) &&
      !op.hasTag(at::Tag::dynamic_output_shape)) {
    return SizesAre::announced;
  }
  const bool in_place =
      std::all_of(results.begin(), results.end(),
                  [](const auto& result) { return result.alias_info(); });
  return in_place && !hasOutputs(op) ? SizesAre::passed : SizesAre::computed;
}

// [common.math.dense] A view describes only dense tensors, so operators that make other tensors are left out.
bool isDense(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string_view> others{
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
  return !others.contains(op.schema().name());
}

// [common.math.derived] PyTorch derives the functional and in-place forms of a structured operator from its `.out` form, which we match by name and inputs.
using Forms = std::multimap<std::string, c10::OperatorHandle>;

/// By name: the forms with outputs, or the others, that have a kernel for
/// `key`.
Forms formsWith(bool outputs, DispatchKey key) {
  Forms found;
  for (const c10::OperatorHandle& op : atenOperators()) {
    if (hasOutputs(op) == outputs && op.hasKernelForDispatchKey(key))
      found.emplace(op.schema().name(), op);
  }
  return found;
}

/// The first of `forms` of this name that `fits`.
template <class Fits>
std::optional<c10::OperatorHandle> findForm(const Forms& forms,
                                            const std::string& name,
                                            Fits fits) {
  const auto [begin, end] = forms.equal_range(name);
  const auto found = std::find_if(
      begin, end, [&](const auto& each) { return fits(each.second.schema()); });
  return found == end ? std::nullopt : std::optional(found->second);
}

std::optional<c10::OperatorHandle> outFormOf(const c10::OperatorHandle& op,
                                             const Forms& all) {
  // The in-place form has the operator's name with an underscore.
  std::string name = op.schema().name();
  if (name.back() == '_') name.pop_back();
  return findForm(all, name, [&](const c10::FunctionSchema& with_out) {
    return haveSameInputs(op.schema(), with_out);
  });
}

// [common.math.primitives] The library has every operator with a CPU kernel, alone or in its `.out` form, unless PyTorch composes it of others.
std::vector<Primitive> findPrimitives() {
  std::vector<Primitive> all;
  const auto add = [&](const auto& op, const auto& out, SizesAre sizes,
                       bool structured) {
    const bool writes = op.schema().is_mutable();
    all.push_back({op, out, sizes, structured, mayFail(op), writes});
  };
  constexpr std::nullopt_t kNone = std::nullopt;
  std::unordered_set<c10::OperatorHandle> structured;
  const Forms with_out = formsWith(/*outputs=*/true, DispatchKey::CPU);
  for (const c10::OperatorHandle& op : atenOperators()) {
    if (!op.hasKernelForDispatchKey(
            DispatchKey::CompositeExplicitAutogradNonFunctional))
      continue;
    if (const auto out = outFormOf(op, with_out)) {
      add(op, out, SizesAre::announced, /*structured=*/true);
      structured.insert(*out);
    }
  }
  for (const c10::OperatorHandle& op : atenOperators()) {
    const auto has = [&](DispatchKey key) {
      return op.hasKernelForDispatchKey(key);
    };
    if (structured.contains(op)) {
      add(op, kNone, SizesAre::announced, /*structured=*/true);
    } else if (has(DispatchKey::CPU) && isDense(op) &&
               !has(DispatchKey::CompositeImplicitAutograd) &&
               !has(DispatchKey::CompositeExplicitAutogradNonFunctional)) {
      add(op, kNone, sizesOf(op), /*structured=*/false);
    }
  }
  return all;
}

// [common.math.once] Each table is built at its first use and never destroyed.
}  // namespace

const std::vector<Primitive>& primitives() {
  static const auto& all = *new std::vector(findPrimitives());
  return all;
}

const Primitive& primitiveOf(const c10::OperatorHandle& op) {
  const auto& all = primitives();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const auto& each) { return each.op == op; });
  TORCH_INTERNAL_ASSERT(found != all.end(), op.operator_name());
  return *found;
}

const std::vector<c10::OperatorHandle>& atenOperators() {
  static const auto& operators = *new std::vector(findOperators());
  return operators;
}

std::optional<c10::OperatorHandle> findOperator(const std::string& name) {
  const size_t dot = std::min(name.find('.'), name.size());
  return c10::Dispatcher::singleton().findSchema(
      {"aten::" + name.substr(0, dot),
       dot < name.size() ? name.substr(dot + 1) : ""});
}

std::optional<c10::OperatorHandle> functionalOf(
    const c10::OperatorHandle& with_out) {
  if (!hasOutputs(with_out)) return std::nullopt;
  static const auto& all =
      *new Forms(formsWith(/*outputs=*/false, DispatchKey::Meta));
  const auto& schema = with_out.schema();
  return findForm(all, schema.name(), [&](const c10::FunctionSchema& form) {
    return haveSameInputs(form, schema) &&
           form.returns().size() == schema.returns().size();
  });
}

// [-]
}  // namespace openreg::math
