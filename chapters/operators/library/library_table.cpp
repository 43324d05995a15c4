// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/library/library_table.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

namespace openreg {

using c10::DispatchKey;

namespace {

// [operators.table.all] A name without a schema is skipped: it has a kernel but no definition.
std::vector<c10::OperatorHandle> findOperators() {
  std::vector<c10::OperatorHandle> found;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.getNamespace() != "aten") continue;
    if (auto op = dispatcher.findSchema(name)) found.push_back(*op);
  }
  return found;
}

// [operators.table.forms] Two forms of an operator have the same inputs; the outputs come last.
bool haveSameInputs(const c10::FunctionSchema& derived,
                    const c10::FunctionSchema& with_out) {
  const auto& few = derived.arguments();
  const auto& more = with_out.arguments();
  return few.size() < more.size() && more[few.size()].is_out() &&
         std::equal(few.begin(), few.end(), more.begin(),
                    [](const auto& one, const auto& other) {
                      return *one.type() == *other.type();
                    });
}

bool hasOutputs(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return !arguments.empty() && arguments.back().is_out();
}

// [operators.table.build] Operators with a kernel of ours are left out; derived forms are matched to their `.out` form.
Library build() {
  std::multimap<std::string, c10::OperatorHandle> with_out;
  std::vector<c10::OperatorHandle> derived;
  for (const c10::OperatorHandle& op : atenOperators()) {
    if (op.hasKernelForDispatchKey(DispatchKey::PrivateUse1)) continue;
    if (op.hasKernelForDispatchKey(
            DispatchKey::CompositeExplicitAutogradNonFunctional)) {
      derived.push_back(op);
    } else if (hasOutputs(op) && op.hasKernelForDispatchKey(DispatchKey::CPU)) {
      with_out.emplace(op.schema().name(), op);
    }
  }
  Library library;
  for (const c10::OperatorHandle& op : derived) {
    // The in-place form has the operator's name with an underscore.
    std::string name = op.schema().name();
    const bool in_place = name.back() == '_';
    if (in_place) name.pop_back();
    auto [candidate, end] = with_out.equal_range(name);
    while (candidate != end &&
           !haveSameInputs(op.schema(), candidate->second.schema()))
      ++candidate;
    if (candidate == end) continue;
    library.derived.push_back(op);
    auto& functional = library.with_out[candidate->second];
    if (!in_place) functional = op;
  }
  return library;
}

// [-]
}  // namespace

// [operators.table.once] Each table is built at its first use and never destroyed.
const Library& library() {
  static const Library& library = *new Library(build());
  return library;
}

const std::vector<c10::OperatorHandle>& atenOperators() {
  static const auto& operators = *new std::vector(findOperators());
  return operators;
}

// [operators.table.find-functional] The functional form of an operator is searched for only once.
std::optional<c10::OperatorHandle> functionalOf(
    const c10::OperatorHandle& with_out) {
  if (!hasOutputs(with_out)) return std::nullopt;
  static std::mutex mutex;
  static auto& known =
      *new std::unordered_map<c10::OperatorHandle,
                              std::optional<c10::OperatorHandle>>();
  std::lock_guard lock(mutex);
  const auto [found, is_new] = known.emplace(with_out, std::nullopt);
  const auto& schema = with_out.schema();
  for (size_t i = 0; is_new && i < atenOperators().size(); ++i) {
    const c10::OperatorHandle& op = atenOperators()[i];
    if (op.schema().name() == schema.name() &&
        haveSameInputs(op.schema(), schema) &&
        op.schema().returns().size() == schema.returns().size() &&
        op.hasKernelForDispatchKey(DispatchKey::Meta))
      found->second = op;
  }
  return found->second;
}

// [operators.table.register] The dispatcher's tables name the file and line of the caller, as with `m.impl`.
void implement(const c10::OperatorHandle& op, c10::KernelFunction kernel,
               DispatchKey key, std::source_location where) {
  static auto& registrations = *new std::vector<c10::RegistrationHandleRAII>;
  registrations.push_back(c10::Dispatcher::singleton().registerImpl(
      op.operator_name(), key, std::move(kernel),
      /*cpp_signature=*/std::nullopt, /*inferred_function_schema=*/nullptr,
      std::string("registered at ") + where.file_name() + ":" +
          std::to_string(where.line())));
}

// [operators.table.refusals] Most of these operators have an argument that asks for the error.
bool mayRefuse(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string> others{
      "aten::_linalg_eigh", "aten::_linalg_svd",  "aten::cholesky_inverse",
      "aten::max_unpool2d", "aten::max_unpool3d", "aten::put_"};
  return op.schema().argumentIndexWithName("check_errors") ||
         others.contains(op.schema().name());
}

// [-]
}  // namespace openreg
