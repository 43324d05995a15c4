// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/checks/rehearsal.h"
#include "torch_openreg/chapters/operators/library/derived.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <tuple>

namespace openreg {

// [operators.unboxed] Operators that programs call often have a kernel with a C++ signature.
/// Null if the boxed function serves the operator. Only derived forms have such
/// kernels.
const c10::KernelFunction* unboxedKernel(const c10::OperatorHandle& op);

// [operators.unboxed.held] A launch owns its arguments, so references to the caller's memory become copies.
template <class T>
struct Held {
  T value;
  explicit Held(const T& argument) : value(argument) {}
  const T& get() const { return value; }
};

template <>
struct Held<at::Tensor> {
  View view;
  explicit Held(const at::Tensor& tensor) : view(tensor) {}
  at::Tensor get() const { return view.tensor(); }
};

template <>
struct Held<at::OptionalIntArrayRef> {
  std::optional<at::DimVector> numbers;
  explicit Held(at::OptionalIntArrayRef argument) {
    if (argument) numbers.emplace(*argument);
  }
  at::OptionalIntArrayRef get() const {
    return numbers ? at::OptionalIntArrayRef(*numbers) : std::nullopt;
  }
};

template <>
struct Held<c10::string_view> {
  std::string text;
  explicit Held(c10::string_view argument) : text(argument) {}
  c10::string_view get() const { return text; }
};

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
  void add(const at::Scalar& number) {
    mix(static_cast<size_t>(number.type()));
  }
  void add(c10::string_view text) { mix(std::hash<c10::string_view>()(text)); }
  void add(int64_t number) { mix(number); }
  void add(bool flag) { mix(flag); }
  void add(at::ScalarType dtype) { mix(static_cast<size_t>(dtype)); }
  void add(std::optional<at::ScalarType> dtype) {
    mix(dtype ? static_cast<size_t>(*dtype) : ~size_t{0});
  }
  void add(at::OptionalIntArrayRef numbers) { mix(numbers.has_value()); }

  size_t key() const { return key_; }
  bool isCommon() const { return is_common_; }
  c10::DeviceIndex device() const { return device_->index(); }

 private:
  void mix(size_t value) { key_ = c10::hash_combine(key_, value); }

  size_t key_ = at::globalContext().deterministicAlgorithms();
  bool is_common_ = true;
  std::optional<c10::Device> device_;
};

// [operators.unboxed.derived] The boxed path of a form is called with the types of its schema.
/// @param name  without a namespace, such as "mul.Tensor".
std::optional<c10::OperatorHandle> findOperator(const std::string& name);

/// "mul_.Tensor" for "mul.Tensor".
std::string inPlaceName(std::string name);

template <class Signature>
class Derived;

template <class Result, class... Args>
class Derived<Result(Args...)> {
 public:
  explicit Derived(const std::string& name)
      : op_(findOperator(name).value().typed<Result(Args...)>()) {}

  Result operator()(Args... args) const {
    CommonDevice device(op_.schema().name().c_str());
    const auto add = [&]<class T>(const T& argument) {
      if constexpr (std::same_as<T, at::Tensor>) device.add(argument);
    };
    (add(args), ...);
    device.index();
    const DerivedCall call;
    return op_.redispatch(c10::DispatchKeySet(c10::DispatchKey::PrivateUse2),
                          args...);
  }

 private:
  c10::TypedOperatorHandle<Result(Args...)> op_;
};

// [operators.unboxed.types] The meta function of a structured operator says which types its kernels have.
/// A string that can be a template argument.
struct Name {
  char text[40] = {};
  char schema[40] = "aten::";  ///< "aten::mul" for "mul.Tensor"
  template <size_t size>
  consteval Name(const char (&from)[size]) {
    std::copy(from, from + size, text);
    std::copy(from, std::find(from, from + size, '.'), schema + 6);
  }
};

template <auto meta>
struct MetaOf;

template <class Class, class... Args, void (Class::*meta)(Args...)>
struct MetaOf<meta> {
  using Out = at::Tensor& (*)(Args..., at::Tensor&);
  static constexpr bool is_elementwise =
      std::derived_from<Class, at::TensorIteratorBase>;
};

// [operators.unboxed.kernel] The first call of a kind takes the boxed path with all its checks, and later calls do not repeat them.
/// The functional and in-place forms of the structured operator `name`, from
/// its `meta` and from the CPU's function for its `.out` form.
template <Name name, auto meta, typename MetaOf<meta>::Out out_form>
struct Unboxed;

template <Name name, class Meta, class Self, class... Args,
          void (Meta::*meta)(Self, Args...),
          typename MetaOf<meta>::Out out_form>
struct Unboxed<name, meta, out_form> {
  static at::Tensor functional(const at::Tensor& self, Args... args) {
    thread_local PassedKeys passed;
    const CallKey call = keyOfCall(self, args...);
    if (!call.isCommon() || !passed.find(call.key())) {
      static const Derived<at::Tensor(const at::Tensor&, Args...)> derived(
          name.text);
      at::Tensor out = derived(self, args...);
      if (call.isCommon()) passed.insert(call.key(), {});
      return out;
    }
    Structured<Meta> op;
    run(op, call.device(), self, args...);
    return op.release();
  }

  static at::Tensor& inPlace(at::Tensor& self, Args... args) {
    thread_local PassedKeys passed;
    const CallKey call = keyOfCall(self, args...);
    if (!call.isCommon() || !passed.find(call.key())) {
      static const Derived<at::Tensor&(at::Tensor&, Args...)> derived(
          inPlaceName(name.text));
      derived(self, args...);
      if (call.isCommon()) passed.insert(call.key(), {});
      return self;
    }
    Structured<Meta> op(self, /*may_resize=*/false);
    run(op, call.device(), self, args...);
    return self;
  }

  // [operators.unboxed.run] PyTorch's meta function checks and allocates, and the CPU's function is the kernel.
 private:
  static CallKey keyOfCall(const at::Tensor& self, const Args&... args) {
    CallKey call;
    call.add(self);
    (call.add(args), ...);
    return call;
  }

  static void run(Structured<Meta>& op, c10::DeviceIndex device,
                  const at::Tensor& self, Args... args) {
    (op.*meta)(self, args...);
    check(launch(nativeStream(currentStream(device)), name.schema,
                 [to = View(op.output()), from = Held<at::Tensor>(self),
                  held = std::tuple(Held<std::decay_t<Args>>(args)...),
                  modes = Modes()] {
                   runKernel(modes, [&] {
                     at::Tensor out = to.tensor();
                     std::apply(
                         [&](const auto&... each) {
                           out_form(from.get(), each.get()..., out);
                         },
                         held);
                   });
                 }));
  }
};

// [-]
}  // namespace openreg
