// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/launch/held.h"
#include "torch_openreg/common/math/plan/primitives.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace openreg {

// [operators.unboxed] Operators that programs call often have a kernel with a C++ signature.
/// Null if the boxed kernel serves the operator.
const c10::KernelFunction* unboxedKernel(const c10::OperatorHandle& op);

// [operators.unboxed.key] Two calls are of the same kind if the boxed path would check them in the same way.
/// Collects the key of a call, and whether it is a common one.
class CallKey {
 public:
  /// The first tensor is the one that is written in place.
  void add(const at::Tensor& tensor) {
    const bool is_first = !device_;
    if (is_first) device_ = tensor.device();
    is_common_ &= is_first ? tensor.device().type() == kDeviceType &&
                                 tensor.is_floating_point()
                           : tensor.device() == device_ ||
                                 (tensor.is_cpu() && tensor.dim() == 0);
    mix(keyOf(tensor));
  }
  /// Of other arguments, only what decides about dtypes and sizes counts.
  void add(const at::Scalar& number) {
    mix(static_cast<size_t>(number.type()));
  }
  /// All of it.
  void add(c10::string_view text) { mix(std::hash<c10::string_view>()(text)); }
  void add(int64_t number) { mix(number); }  ///< the value
  void add(bool flag) { mix(flag); }         ///< the value
  void add(at::ScalarType dtype) { mix(static_cast<size_t>(dtype)); }  ///< it
  void add(std::optional<at::ScalarType> dtype) {  ///< it, or its absence
    mix(dtype ? static_cast<size_t>(*dtype) : ~size_t{0});
  }
  /// Whether it is there.
  void add(at::OptionalIntArrayRef numbers) { mix(numbers.has_value()); }
  /// The tensor, or its absence.
  void add(const std::optional<at::Tensor>& tensor) {
    if (tensor && tensor->defined()) return add(*tensor);
    mix(~size_t{0});
  }

  // [operators.unboxed.key.lists] Lists are common too, unless indices have to be counted or copied first.
  /// The tensors and how many they are.
  void add(const at::ITensorListRef& tensors) {
    for (const at::Tensor& tensor : tensors) add(tensor);
    mix(tensors.size());
  }
  /// The indices. Masks, and indices on the host, are not common.
  void add(const Indices& indices) {
    for (const std::optional<at::Tensor>& index : indices) {
      mix(keyOf(index.value_or(at::Tensor())));
      is_common_ &=
          !index || !index->defined() ||
          (index->scalar_type() == at::kLong && index->device() == device_);
    }
  }

  size_t key() const { return key_; }           ///< one for each kind of call
  bool isCommon() const { return is_common_; }  ///< all tensors fit together
  c10::DeviceIndex device() const { return device_->index(); }  ///< theirs

 private:
  void mix(size_t value) { key_ = followedBy(key_, value); }

  size_t key_ = at::globalContext().deterministicAlgorithms();
  bool is_common_ = true;
  std::optional<c10::Device> device_;
};

// [operators.unboxed.boxed] The boxed kernel of a form can be called with the types of its schema.
/// A kernel of `op` that takes its arguments from a stack; the library must
/// have the operator.
c10::KernelFunction boxedKernel(const c10::OperatorHandle& op);

/// "mul_.Tensor" for "mul.Tensor".
std::string inPlaceName(std::string name);

template <class Signature>
class Boxed;

/// The boxed kernel of one form.
template <class Result, class... Args>
class Boxed<Result(Args...)> {
 public:
  /// @param name  such as "mul.Tensor"; the library must have the operator.
  explicit Boxed(const std::string& name)
      : op_(math::findOperator(name).value()), kernel_(boxedKernel(op_)) {}

  /// Does all checks, launches and returns the result.
  Result operator()(Args... args) const {
    return kernel_.template call<Result, Args...>(op_, c10::DispatchKeySet(),
                                                  std::forward<Args>(args)...);
  }

 private:
  c10::OperatorHandle op_;
  c10::KernelFunction kernel_;
};

// [operators.unboxed.types] The meta function of a structured operator says which types its kernels have.
/// A string that can be a template argument.
struct Name {
  char text[40] = {};          ///< "mul.Tensor"
  char schema[40] = "aten::";  ///< "aten::mul" for "mul.Tensor"
  /// A text that does not fit does not compile.
  template <size_t size>
  consteval Name(const char (&from)[size]) {
    std::copy(from, from + size, text);
    std::copy(from, std::find(from, from + size, '.'), schema + 6);
  }
};

/// The type of an argument in all other functions of the operator.
template <class T>
using Formal = std::conditional_t<
    std::same_as<T, at::IOptTensorListRef>, const Indices&,
    std::conditional_t<std::same_as<T, at::OptionalTensorRef>,
                       const std::optional<at::Tensor>&, T>>;

// [operators.unboxed.meta] A meta function takes its arguments in types of its own, and the outputs follow them in the `.out` form.
/// The argument as the meta function takes it.
template <class T>
const T& forMeta(const T& argument) {
  return argument;
}
/// The same of a tensor that may be missing.
inline at::OptionalTensorRef forMeta(const std::optional<at::Tensor>& tensor) {
  return tensor ? at::OptionalTensorRef(*tensor) : at::OptionalTensorRef();
}

template <auto meta>
struct MetaOf;

template <class Class, class Result, class... Args,
          Result (Class::*meta)(Args...)>
struct MetaOf<meta> {
  using Out = at::Tensor& (*)(Formal<Args>..., at::Tensor&);
  using OutOfTwo = std::tuple<at::Tensor&, at::Tensor&> (*)(Formal<Args>...,
                                                            at::Tensor&,
                                                            at::Tensor&);
  static constexpr bool is_elementwise =
      std::derived_from<Class, at::TensorIteratorBase>;
};

// [operators.unboxed.kernel] The first call of a kind takes the boxed path with all its checks, and later calls do not repeat them.
/// The functional and in-place forms of the structured operator `name`, from
/// its `meta` and from the CPU's function for its `.out` form.
template <Name name, auto meta, auto out_form>
struct Unboxed;

template <Name name, class Meta, class Precomputed, class Self, class... Args,
          Precomputed (Meta::*meta)(Self, Args...), auto out_form>
struct Unboxed<name, meta, out_form> {
  static constexpr bool is_single =
      std::same_as<decltype(out_form), typename MetaOf<meta>::Out>;
  using Outputs = std::make_index_sequence<is_single ? 1 : 2>;
  using Result = std::conditional_t<is_single, at::Tensor,
                                    std::tuple<at::Tensor, at::Tensor>>;

  static Result functional(Self self, Formal<Args>... args) {
    thread_local PassedKeys passed;
    const CallKey call = keyOfCall(self, args...);
    if (!call.isCommon() || !passed.find(call.key())) {
      static const Boxed<Result(Self, Formal<Args>...)> boxed(name.text);
      Result out = boxed(self, args...);
      if (call.isCommon()) passed.insert(call.key(), {});
      return out;
    }
    Structured<Meta, Outputs::size()> op;
    run(op, call.device(), self, args...);
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return Result(op.release(i)...);
    }
    (Outputs());
  }

  // [operators.unboxed.in-place] The in-place form differs only in where the result goes.
  static at::Tensor& inPlace(at::Tensor& self, Formal<Args>... args) {
    thread_local PassedKeys passed;
    const CallKey call = keyOfCall(self, args...);
    if (!call.isCommon() || !passed.find(call.key())) {
      static const Boxed<at::Tensor&(at::Tensor&, Formal<Args>...)> boxed(
          inPlaceName(name.text));
      boxed(self, args...);
      if (call.isCommon()) passed.insert(call.key(), {});
      return self;
    }
    Structured<Meta> op(self, /*may_resize=*/false);
    run(op, call.device(), self, args...);
    return self;
  }

  // [operators.unboxed.run] PyTorch's meta function checks and allocates, and the CPU's function is the kernel.
 private:
  static CallKey keyOfCall(const std::decay_t<Self>& self,
                           const std::decay_t<Formal<Args>>&... args) {
    CallKey call;
    call.add(self);
    (call.add(args), ...);
    return call;
  }

  static void run(Structured<Meta, Outputs::size()>& op,
                  c10::DeviceIndex device, Self self, Formal<Args>... args) {
    (op.*meta)(self, forMeta(args)...);
    WithoutGil others_run;  // A full queue makes the host wait.
    beginAccesses();
    [&]<size_t... i>(std::index_sequence<i...>) {
      check(
          launch(currentNativeStream(device), name.schema,
                 [to = std::array{View(op.output(i))...},
                  from = Held<std::decay_t<Self>>(self),
                  held = std::tuple(Held<std::decay_t<Formal<Args>>>(args)...),
                  modes = Modes()] {
                   runKernel(modes, [&] {
                     std::array out{to[i].tensor()...};
                     std::apply(
                         [&](const auto&... each) {
                           out_form(from.get(), each.get()..., out[i]...);
                         },
                         held);
                   });
                 }));
    }
    (Outputs());
  }
};

// [-]
}  // namespace openreg
