// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/arguments.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/device/streams/stream.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>

namespace openreg {

// [distributed.arguments.tensors] Tensors on other devices belong to other backends of the same group.
c10::DeviceIndex checkTensors(at::TensorList inputs, at::TensorList outputs) {
  TORCH_CHECK_VALUE(
      !inputs.empty() || !outputs.empty(),
      "orccl was given no tensor; each rank passes at least one.");
  const c10::Device device =
      inputs.empty() ? outputs[0].device() : inputs[0].device();
  const auto checkTensor = [&](const at::Tensor& tensor) {
    TORCH_CHECK_VALUE(
        tensor.device().type() == kDeviceType,
        "orccl works on openreg tensors, but this one is on ", tensor.device(),
        "; for both, make the group with backend=\"cpu:gloo,openreg:orccl\".");
    TORCH_CHECK_VALUE(tensor.layout() == c10::kStrided && !tensor.is_nested(),
                      "orccl works on dense tensors, but this one has layout ",
                      tensor.layout(),
                      "; pass its values, or the result of to_dense().");
    TORCH_CHECK_VALUE(
        tensor.device() == device, "The tensors of one call are on ", device,
        " and ", tensor.device(), "; a rank passes tensors of one device.");
  };
  std::for_each(inputs.begin(), inputs.end(), checkTensor);
  std::for_each(outputs.begin(), outputs.end(), checkTensor);
  return device.index();
}

// [distributed.arguments.same] An input and its output have one dtype, and mostly one size.
void checkCount(const char* what, size_t count, size_t expected) {
  TORCH_CHECK_VALUE(count == expected, "orccl was given ", count, " ", what,
                    "; it needs ", expected, ".");
}

void checkSameType(const at::Tensor& input, const at::Tensor& output) {
  TORCH_CHECK_TYPE(input.scalar_type() == output.scalar_type(),
                   "Input and output have different dtypes, ",
                   input.scalar_type(), " and ", output.scalar_type(),
                   "; a collective does not convert.");
}

void checkSameSize(const at::Tensor& input, const at::Tensor& output) {
  checkSameType(input, output);
  TORCH_CHECK_VALUE(input.numel() == output.numel(), "The input has ",
                    input.numel(), " elements, the output ", output.numel(),
                    "; they need the same number.");
}

// [distributed.arguments.types] A dtype without arithmetic can be moved, but not reduced.
orcclDataType_t dataTypeOf(const at::Tensor& tensor) {
  static const std::map<c10::ScalarType, orcclDataType_t> types = {
      {c10::kFloat, orcclFloat32},
      {c10::kDouble, orcclFloat64},
      {c10::kHalf, orcclFloat16},
      {c10::kBFloat16, orcclBfloat16},
      {c10::kChar, orcclInt8},
      {c10::kShort, orcclInt16},
      {c10::kInt, orcclInt32},
      {c10::kLong, orcclInt64},
      {c10::kByte, orcclUint8},
      {c10::kUInt16, orcclUint16},
      {c10::kUInt32, orcclUint32},
      {c10::kUInt64, orcclUint64},
      {c10::kBool, orcclBool},
      {c10::kComplexFloat, orcclComplex64},
      {c10::kComplexDouble, orcclComplex128},
      {c10::kFloat8_e5m2, orcclFloat8e5m2},
      {c10::kFloat8_e4m3fn, orcclFloat8e4m3fn},
      {c10::kFloat8_e5m2fnuz, orcclFloat8e5m2fnuz},
      {c10::kFloat8_e4m3fnuz, orcclFloat8e4m3fnuz},
      {c10::kFloat8_e8m0fnu, orcclFloat8e8m0fnu},
  };
  const auto found = types.find(tensor.scalar_type());
  return found == types.end() ? orcclBytes : found->second;
}

// [distributed.arguments.reductions] PREMUL_SUM is a sum of products.
static orcclRedOp_t reductionOf(c10d::ReduceOp::RedOpType reduction) {
  using Op = c10d::ReduceOp;
  static const std::map<Op::RedOpType, orcclRedOp_t> reductions = {
      {Op::SUM, orcclSum},   {Op::PREMUL_SUM, orcclSum},
      {Op::AVG, orcclAvg},   {Op::PRODUCT, orcclProd},
      {Op::MIN, orcclMin},   {Op::MAX, orcclMax},
      {Op::BAND, orcclBand}, {Op::BOR, orcclBor},
      {Op::BXOR, orcclBxor},
  };
  const auto found = reductions.find(reduction);
  TORCH_CHECK_VALUE(found != reductions.end(), "orccl has no reduction ",
                    int{reduction}, "; use one of ReduceOp's.");
  return found->second;
}

// [distributed.arguments.reduced] A sum treats a complex number as two real ones; maximum and product would be wrong.
static void checkReducible(c10::ScalarType type,
                           const c10d::ReduceOp& reduction) {
  const bool is_complex = c10::isComplexType(type);
  TORCH_CHECK_TYPE(reduction.op_ != c10d::ReduceOp::PREMUL_SUM ||
                       c10::isFloatingType(type) || is_complex,
                   "orccl cannot multiply ", type,
                   " by the factor of PREMUL_SUM; convert the tensor to a "
                   "floating-point type.");
  TORCH_CHECK_TYPE(!is_complex || c10d::isComplexViewAsRealAllowed(reduction),
                   "orccl reduces complex tensors with SUM, AVG and "
                   "PREMUL_SUM only.");
  TORCH_CHECK_TYPE(type != c10::kComplexHalf, "orccl cannot reduce ", type,
                   "; convert the tensor to complex64.");
}

orcclCall_t callOf(orcclFunc_t func, const at::Tensor& tensor,
                   const c10d::ReduceOp* reduction, int root) {
  orcclCall_t call{func, dataTypeOf(tensor), orcclSum,
                   root, tensor.nbytes(),    0};
  if (!reduction) return call;
  const auto type = tensor.scalar_type();
  checkReducible(type, *reduction);
  if (call.datatype == orcclComplex64) call.datatype = orcclFloat32;
  if (call.datatype == orcclComplex128) call.datatype = orcclFloat64;
  TORCH_CHECK_TYPE(!orcclCheckReduction(call.datatype, orcclSum),
                   "orccl cannot reduce ", type,
                   "; convert the tensor to a type of integers or "
                   "floating-point numbers of 16 bits or more.");
  call.op = reductionOf(reduction->op_);
  checkOrccl(orcclCheckReduction(call.datatype, call.op));
  return call;
}

// [distributed.arguments.premultiplied] The factor may be a tensor, whose value the host never reads.
at::Tensor premultiplied(const at::Tensor& tensor,
                         const c10d::ReduceOp* reduction) {
  if (!reduction || reduction->op_ != c10d::ReduceOp::PREMUL_SUM) return tensor;
  const auto& factor =
      static_cast<const c10d::PreMulSumSupplement&>(*reduction->supplement_);
  if (!factor.tensor_factor.defined()) return tensor.mul(factor.double_factor);
  if (factor.tensor_factor.device() == tensor.device()) {
    factor.tensor_factor.record_stream(currentStream(tensor.device().index()));
  }
  return tensor.mul(factor.tensor_factor.reshape({}).to(tensor.scalar_type()));
}

// [distributed.arguments.copies] Copies are made on the operation's stream, so their memory is free in its order.
Dense::Dense(const at::Tensor& tensor, Use use)
    : tensor_(tensor),
      dense_(tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()
                 ? tensor
             : use == kRead
                 ? tensor.resolve_conj().resolve_neg().contiguous()
                 : at::empty_like(tensor, c10::MemoryFormat::Contiguous)) {
  if (use == kWrite && !dense_.is_same(tensor_)) {
    at::assert_no_internal_overlap(tensor_);
  }
}

void Dense::writeBack() const {
  if (!dense_.is_same(tensor_)) tensor_.copy_(dense_, true);
}

// [-]
}  // namespace openreg
