// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/library_table.h"

#include <sstream>

namespace openreg {
namespace {

// [operators.table.signature] Two forms of one operator take the same, apart from the outputs.
std::string signatureOf(const c10::OperatorHandle& op) {
  std::ostringstream signature;
  signature << op.schema().name();
  for (const auto& argument : op.schema().arguments()) {
    if (!argument.is_out()) signature << ' ' << *argument.type();
  }
  return signature.str();
}

bool hasOutputs(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return !arguments.empty() && arguments.back().is_out();
}

// [operators.table.by-hand] What this chapter writes itself is not registered a second time.
bool isByHand(const c10::OperatorName& name) {
  return name.name == "aten::add" || name.name == "aten::add_";
}

// [operators.table.build] Derived forms first; then the `.out` forms they were derived from.
Library build() {
  using c10::DispatchKey;
  Library library;
  auto& dispatcher = c10::Dispatcher::singleton();
  std::map<std::string, c10::OperatorHandle> with_out;
  std::vector<c10::OperatorHandle> derived;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    auto op = dispatcher.findSchema(name);
    if (!op || name.getNamespace() != "aten" || isByHand(name)) {
      continue;
    }
    if (op->hasKernelForDispatchKey(
            DispatchKey::CompositeExplicitAutogradNonFunctional)) {
      derived.push_back(*op);
    } else if (hasOutputs(*op) &&
               op->hasKernelForDispatchKey(DispatchKey::CPU)) {
      with_out.emplace(signatureOf(*op), *op);
    }
  }
  for (const c10::OperatorHandle& op : derived) {
    std::string signature = signatureOf(op);
    if (auto found = with_out.find(signature); found != with_out.end()) {
      library.with_out.push_back(found->second);
      library.functional.emplace(signature, op);
    }
    // The in-place form is called like the operator, with an underscore.
    const size_t underscore = signature.find("_ ");
    if (underscore != std::string::npos) signature.erase(underscore, 1);
    if (with_out.count(signature)) library.derived.push_back(op);
  }
  return library;
}

// [-]
}  // namespace

// [operators.table.once] Made when it is first asked for.
const Library& library() {
  static const Library& library = *new Library(build());
  return library;
}

c10::OperatorHandle functionalOf(const c10::OperatorHandle& with_out) {
  return library().functional.at(signatureOf(with_out));
}

// [-]
}  // namespace openreg
