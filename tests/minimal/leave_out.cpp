// SPDX-License-Identifier: BSD-3-Clause
// Loaded before all others, stands between a backend and PyTorch's dispatcher:
// leaves out the operators that OPENREG_LEAVE_OUT names, each for one key and
// separated by commas.
#include <ATen/core/dispatch/Dispatcher.h>

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace {

bool leftOut(const c10::OperatorName& name,
             std::optional<c10::DispatchKey> key) {
  const char* left_out = std::getenv("OPENREG_LEAVE_OUT");
  std::string operator_name = c10::toString(name);
  if (operator_name.starts_with("aten::")) operator_name.erase(0, 6);
  if (!left_out || !key) return false;
  const std::string listed = "," + std::string(left_out) + ",";
  return listed.find("," + std::string(c10::toString(*key)) + "." +
                     operator_name + ",") != std::string::npos;
}

}  // namespace

// What every `m.impl(...)` calls, and `implement()` of chapter operators.
c10::RegistrationHandleRAII c10::Dispatcher::registerImpl(
    OperatorName name, std::optional<DispatchKey> key, KernelFunction kernel,
    std::optional<impl::CppSignature> signature,
    std::unique_ptr<FunctionSchema> schema, std::string debug) {
  if (leftOut(name, key)) return RegistrationHandleRAII([] {});
  using Real = RegistrationHandleRAII (*)(
      Dispatcher*, OperatorName, std::optional<DispatchKey>, KernelFunction,
      std::optional<impl::CppSignature>, std::unique_ptr<FunctionSchema>,
      std::string);
  static const auto real = reinterpret_cast<Real>(dlsym(
      RTLD_NEXT,
      "_ZN3c1010Dispatcher12registerImplENS_12OperatorNameESt8optionalINS_"
      "11DispatchKeyEENS_14KernelFunctionES2_INS_"
      "4impl12CppSignatureEESt10unique_ptrINS_14FunctionSchemaESt14default_"
      "deleteISA_EENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"));
  return real(this, std::move(name), key, std::move(kernel),
              std::move(signature), std::move(schema), std::move(debug));
}
