// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/kernels/kernels.h"
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros_like.h>

#include <string_view>
#include <unordered_set>

namespace openreg {

// [common.cpu-kernel.norms] A norm keeps its statistics in float32, but the CPU's backward kernels expect the dtype of the parameters.
static bool isStatistic(std::string_view name) {
  return name == "mean" || name == "rstd" || name.starts_with("save_");
}

static void convertStatistics(const c10::OperatorHandle& op, Stack& arguments) {
  const auto& names = op.schema().arguments();
  at::ScalarType dtype = arguments[1].toTensor().scalar_type();
  const auto forEachTensor = [&](bool statistics, const auto& visit) {
    for (size_t i = 2; i < arguments.size(); ++i) {
      if (arguments[i].isTensor() && arguments[i].toTensor().defined() &&
          isStatistic(names[i].name()) == statistics)
        visit(arguments[i]);
    }
  };
  forEachTensor(false, [&](const c10::IValue& parameter) {
    if (parameter.toTensor().scalar_type() == at::kFloat)
      dtype = at::promoteTypes(dtype, at::kFloat);
  });
  forEachTensor(true, [&](c10::IValue& statistic) {
    statistic = statistic.toTensor().to(dtype);
  });
}

// [common.cpu-kernel.bags] The CPU's kernel does not compute the bag of each index if its own backward kernel does not need it.
static void completeBags(const Stack& arguments, Stack& results) {
  const at::Tensor indices = arguments[1].toTensor();
  const at::Tensor offsets = arguments[2].toTensor();
  if (results[1].toTensor().numel() < indices.numel()) {
    const at::Tensor places = at::arange(indices.numel(), offsets.options());
    results[1] = at::searchsorted(offsets, places, /*out_int32=*/false,
                                  /*right=*/true)
                     .sub(1);
  }
  // With a last offset, the announced sizes have one element more.
  const at::Tensor counts = results[2].toTensor();
  at::Tensor sizes = at::zeros_like(offsets);
  sizes.narrow(0, 0, counts.numel()).copy_(counts);
  results[2] = sizes;
  const bool largest = arguments[4].toInt() == 2;
  if (!largest) results[3] = at::zeros_like(offsets).narrow(0, 0, 0);
}

// [common.cpu-kernel.bags.end] The last bag may end before the last index, and the CPU's mean counts the rest, too.
/// An index behind the last bag is in a bag that does not exist, for
/// `completeBags`.
static void endBags(const c10::OperatorHandle& op, Stack& arguments) {
  const at::Tensor offsets = arguments[2].toTensor();
  const int64_t all = arguments[1].toTensor().numel();
  if (!argumentNamed("include_last_offset", op, arguments).toBool() ||
      offsets.numel() == 0)
    return;
  const auto end = offsets[-1].item<int64_t>();
  if (end < 0 || end >= all) return;
  for (const char* name : {"indices", "per_sample_weights"}) {
    c10::IValue& each = argumentNamed(name, op, arguments);
    if (each.isTensor() && each.toTensor().defined())
      each = each.toTensor().narrow(0, 0, end);
  }
}

// [common.cpu-kernel.strides] Some CPU kernels take strides for granted that PyTorch does not promise, and read or write outside of the tensor.
/// Each of them returns all that it writes, so an output that is a copy needs
/// no copying back here.
static bool ignoresStrides(std::string_view name) {
  static const std::unordered_set<std::string_view> names{
      "aten::linalg_lu",
      "aten::lu_unpack",
      "aten::median",
      "aten::nanmedian",
      "aten::native_group_norm",
      "aten::native_group_norm_backward",
      "aten::native_layer_norm_backward",
      "aten::tril",
      "aten::triu",
  };
  return names.contains(name);
}

/// The kernel of a group norm expects all tensors in the memory format of its
/// input. An output whose elements share memory cannot be a copy, and is left
/// to the kernel, as on the CPU.
static void makeContiguous(const c10::OperatorHandle& op, Stack& arguments) {
  bool overlaps = false;
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    overlaps |= at::has_internal_overlap(written) == at::MemOverlap::Yes;
  });
  if (overlaps) return;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
  if (std::string_view(op.schema().name()).starts_with("aten::native_group"))
    format = arguments[*op.schema().argumentIndexWithName("input")]
                 .toTensor()
                 .suggest_memory_format();
  for (c10::IValue& argument : arguments) {
    argument = mapTensors(argument, [&](const at::Tensor& tensor) {
      return tensor.contiguous(tensor.dim() < 4 ? at::MemoryFormat::Contiguous
                                                : format);
    });
  }
}

// [common.cpu-kernel.weight] The CPU's kernel makes the gradient of a bias like the weight, which may be missing.
static void giveWeight(const c10::OperatorHandle& op, Stack& arguments) {
  c10::IValue& weight = argumentNamed("weight", op, arguments);
  if (weight.isTensor() && weight.toTensor().defined()) return;
  weight = at::ones({argumentNamed("C", op, arguments).toInt()},
                    argumentNamed("mean", op, arguments).toTensor().options());
}

// [common.cpu-kernel.call] Operators are listed by name, because neither schema nor tags reveal what a kernel keeps.
void callCpuKernel(const c10::OperatorHandle& op, Stack& stack) {
  const std::string_view name = op.schema().name();
  const bool bag = name == "aten::_embedding_bag" ||
                   name == "aten::_embedding_bag_forward_only";
  const Stack arguments = bag ? stack : Stack();
  checkTrusted(op, stack);
  if (bag) endBags(op, stack);
  if (name.ends_with("_norm_backward")) convertStatistics(op, stack);
  if (name == "aten::native_group_norm_backward") giveWeight(op, stack);
  if (ignoresStrides(name)) makeContiguous(op, stack);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  if (bag) completeBags(arguments, stack);
}

// [-]
}  // namespace openreg
