// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/library/registration.h"
#include "torch_openreg/chapters/operators/library/unboxed.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/EmptyTensor.h>

#include <memory>
#include <string_view>
#include <unordered_set>

namespace openreg {

namespace {

// [operators.binding.device] The check runs at each call, so it does not build a list of all tensors.
c10::DeviceIndex commonDeviceOf(const c10::OperatorHandle& op,
                                c10::ArrayRef<c10::IValue> arguments) {
  CommonDevice device(op.schema().name().c_str());
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) {
      device.add(argument.toTensor());
    } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
      for (const at::Tensor& tensor : tensorsOf({argument})) device.add(tensor);
    }
  }
  return device.index();
}

// [operators.binding.allocate] A result that is not one of the caller's tensors gets new memory.
/// On the current device. A kernel that runs already needs no dispatcher, and
/// writes all of the memory, so nothing fills it before.
c10::IValue withMemory(const c10::IValue& result) {
  return mapTensors(result, [](const at::Tensor& like) -> at::Tensor {
    if (like.is_privateuseone()) return like;
    constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
    return at::detail::empty_strided_generic(
        like.sizes(), like.strides(), &allocator(), keys, like.scalar_type());
  });
}

// [operators.binding.zeros] PyTorch writes out zero tensors for all operators but `dot` and `vdot`, so here they are written out for these two.
void writeZeros(Stack& stack, size_t count) {
  for (auto argument = stack.end() - count; argument != stack.end(); ++argument)
    if (argument->isTensor() && argument->toTensor()._is_zerotensor())
      *argument = argument->toTensor().clone();
}

// [operators.binding.rate] A learning rate of the host is a number, although PyTorch's optimizers also take one with a dimension.
void flattenRate(const c10::OperatorHandle& op, Stack& stack, size_t count) {
  if (op.schema().overload_name() != "tensor_lr") return;
  const auto place = op.schema().argumentIndexWithName("lr");
  c10::IValue& rate = torch::jit::peek(stack, *place, count);
  if (rate.toTensor().is_cpu() && rate.toTensor().numel() == 1)
    rate = rate.toTensor().reshape({});
}

// [operators.binding] One boxed function binds all operators of the math library: ask, allocate, enqueue.
/// Takes the arguments of `primitive` from the stack and leaves its results,
/// which the current stream of their device will compute. The library checks
/// before anything is allocated, and runs after everything is.
/// @throws what PyTorch throws for arguments that do not fit.
void compute(const math::Primitive& primitive, Stack* stack) {
  const size_t count = primitive.op.schema().arguments().size();
  moveIndices(*stack, count);
  flattenRate(primitive.op, *stack, count);
  const c10::DeviceIndex device =
      commonDeviceOf(primitive.op, torch::jit::last(*stack, count));
  writeZeros(*stack, count);
  const orStream_t stream = currentNativeStream(device);
  math::Plan plan(primitive, torch::jit::pop(*stack, count), stream);
  const DeviceScope scope(device);
  Stack outputs;
  outputs.reserve(plan.results().size());
  for (const c10::IValue& result : plan.results())
    outputs.push_back(withMemory(result));
  plan.enqueue(outputs, stream);
  stack->insert(stack->end(), outputs.begin(), outputs.end());
}

// [operators.binding.kernel] A boxed kernel can be an object, so each operator's has its description at hand.
class LibraryKernel final : public c10::OperatorKernel {
 public:
  explicit LibraryKernel(const math::Primitive& primitive)
      : primitive_(primitive) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet,
                  Stack* stack) {
    compute(primitive_, stack);
  }

 private:
  const math::Primitive& primitive_;
};

c10::KernelFunction boxed(const math::Primitive& primitive) {
  return c10::KernelFunction::makeFromBoxedFunctor(
      std::make_unique<LibraryKernel>(primitive));
}

}  // namespace

c10::KernelFunction boxedKernel(const c10::OperatorHandle& op) {
  return boxed(math::primitiveOf(op));
}

// [operators.binding.ours] An operator that has a kernel of ours is not bound, nor are its derived forms, which PyTorch leads there.
namespace {

bool isOurs(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
}

bool isBound(const math::Primitive& primitive) {
  // One for the next chapter, one that an exercise takes off the fallback, and
  // one that resizes arguments that it writes in place.
  static const std::unordered_set<std::string_view> left_out{
      "aten::_amp_foreach_non_finite_check_and_unscale_",
      "aten::fake_quantize_per_tensor_affine_cachemask",
      "aten::_fused_moving_avg_obs_fq_helper"};
  const c10::OperatorHandle& op = primitive.op;
  return !isOurs(op) && !(primitive.with_out && isOurs(*primitive.with_out)) &&
         fallbackRefusal(op).empty() && !left_out.contains(op.schema().name());
}

// [operators.binding.register] This file is linked last of its section, because it must see the registrations before it.
[[maybe_unused]] const bool library_registered = [] {
  std::vector<const math::Primitive*> bound;
  for (const math::Primitive& primitive : math::primitives())
    if (isBound(primitive)) bound.push_back(&primitive);
  for (const math::Primitive* primitive : bound) {
    const c10::KernelFunction* unboxed = unboxedKernel(primitive->op);
    implement(primitive->op, unboxed ? *unboxed : boxed(*primitive));
  }
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
