// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/prediction.h"

#include <ATen/MetaFunctions.h>
#include <ATen/Operators.h>

#include <unordered_map>

namespace openreg {
namespace {

// [common.meta-functions.table] The table is written while the build is configured, from the list of the installed release.
using Functions = std::unordered_map<c10::OperatorHandle, c10::KernelFunction>;

template <class Function>
void add(Functions& functions, const char* name, const char* overload,
         Function* function) {
  const auto op = c10::Dispatcher::singleton().findSchema(
      {std::string("aten::") + name, overload});
  if (op)
    functions.emplace(
        *op, c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
}

Functions readFunctions() {
  Functions functions;
#define META(name, overload, function, kind) \
  add<at::_ops::kind::schema>(functions, name, overload, &at::meta::function);
#include "meta_functions.inc"
#undef META
  return functions;
}

// [common.meta-functions.find] It is built at its first use and never destroyed.
}  // namespace

const c10::KernelFunction* metaFunction(const c10::OperatorHandle& op) {
  static const Functions& functions = *new Functions(readFunctions());
  const auto found = functions.find(op);
  return found == functions.end() ? nullptr : &found->second;
}

// [-]
}  // namespace openreg
