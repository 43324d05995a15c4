// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/prediction.h"

#include <ATen/MetaFunctions.h>
#include <ATen/Operators.h>

#include <unordered_map>
#include <utility>

namespace openreg {
namespace {

// [common.meta-functions.call] PyTorch's own wrappers would be compiled in full for each of two hundred types of functions; here an argument is converted in one place for each of its types.
template <class Argument>
[[gnu::noinline]] decltype(auto) argumentFrom(c10::IValue& value) {
  return c10::impl::ivalue_to_arg<
      typename c10::impl::decay_if_not_tensor<Argument>::type,
      /*AllowDeprecatedTypes=*/false>::call(value);
}

template <class Result>
[[gnu::noinline]] void replaceBy(Result result, Stack& stack) {
  stack.clear();
  c10::impl::push_outputs<Result, false>::call(std::move(result), &stack);
}

template <class Type>
struct Caller;

template <class Result, class... Arguments>
struct Caller<Result(Arguments...)> {
  static void call(MetaFunction::Any function, Stack& stack) {
    call(function, stack, std::index_sequence_for<Arguments...>());
  }
  template <size_t... i>
  static void call(MetaFunction::Any function, Stack& stack,
                   std::index_sequence<i...>) {
    const auto known = reinterpret_cast<Result (*)(Arguments...)>(function);
    replaceBy<c10::impl::decay_if_tuple_t<Result>>(
        known(argumentFrom<Arguments>(stack[i])...), stack);
  }
};

// [common.meta-functions.table] The table is written while the build is configured, from the list of the installed release.
struct Row {
  const char* name;
  const char* overload;
  MetaFunction function;
};

const Row rows[] = {
#define META(name, overload, function, kind)                        \
  {"aten::" name,                                                   \
   overload,                                                        \
   {reinterpret_cast<MetaFunction::Any>(                            \
        static_cast<at::_ops::kind::schema*>(&at::meta::function)), \
    &Caller<at::_ops::kind::schema>::call}},
#include "torch_openreg_built/common/math/meta_functions.inc"
#undef META
};

using Functions = std::unordered_map<c10::OperatorHandle, MetaFunction>;

Functions readFunctions() {
  Functions functions;
  for (const Row& row : rows) {
    const c10::OperatorName name(row.name, row.overload);
    if (const auto op = c10::Dispatcher::singleton().findSchema(name))
      functions.emplace(*op, row.function);
  }
  return functions;
}

// [common.meta-functions.find] It is built at its first use and never destroyed.
}  // namespace

const MetaFunction* metaFunction(const c10::OperatorHandle& op) {
  static const Functions& functions = *new Functions(readFunctions());
  const auto found = functions.find(op);
  return found == functions.end() ? nullptr : &found->second;
}

// [-]
}  // namespace openreg
