// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/library/registration.h"

#include <string>
#include <vector>

namespace openreg {

// [operators.registration.implement] The dispatcher's tables name the file and line of the caller, as with `m.impl`.
void implement(const c10::OperatorHandle& op, c10::KernelFunction kernel,
               c10::DispatchKey key, std::source_location where) {
  static auto& registrations = *new std::vector<c10::RegistrationHandleRAII>;
  registrations.push_back(c10::Dispatcher::singleton().registerImpl(
      op.operator_name(), key, std::move(kernel),
      /*cpp_signature=*/std::nullopt, /*inferred_function_schema=*/nullptr,
      std::string("registered at ") + where.file_name() + ":" +
          std::to_string(where.line())));
}

// [-]
}  // namespace openreg
