// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/math/interface/openreg_math.h"
#include "torch_openreg/common/math/kernels/kernels.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/launch/device_code.h"
#include "torch_openreg/common/math/plan/prediction.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <algorithm>
#include <stdexcept>

namespace openreg::math {
namespace {

// [common.math.announce] If PyTorch refuses the arguments in Python, the CPU's kernel may have a better error message.
Stack announce(const Primitive& primitive, const Stack& arguments) {
  try {
    return predict(primitive.op, arguments);
  } catch (const std::exception&) {
    if (!primitive.structured)
      checkTypes(primitive.op, arguments, /*results=*/{}, /*structured=*/false);
    throw;
  }
}

Stack passed(const c10::OperatorHandle& op, const Stack& arguments) {
  Stack results;
  results.reserve(op.schema().returns().size());
  for (size_t i = 0; i < op.schema().returns().size(); ++i)
    results.push_back(*writtenFor(op, arguments, i));
  return results;
}

SizesAre sizesOf(const Primitive& primitive) {
  // PyTorch's Meta kernel would refuse, so the result itself says its size.
  return at::globalContext().deterministicAlgorithms() &&
                 hasCudaOnlyAlert(primitive.op)
             ? SizesAre::computed
             : primitive.sizes;
}

// [common.math.deliver] The results are converted to the dtypes and strides that were announced.
/// For a bug, of which the program is told as of a refusal.
template <class... Parts>
[[noreturn]] void throwUnannounced(const Parts&... parts) {
  throw std::logic_error(c10::str(parts...));
}

/// Where the CPU's kernel leaves out a result, because nothing will read it,
/// the output is zeros. Any other size than the announced one is a bug.
void deliverTensor(size_t i, const at::Tensor& to, const at::Tensor& from) {
  if (!to.defined() && from.defined())
    throwUnannounced("Result ", i, " was announced as undefined and is ",
                     from.scalar_type(), from.sizes(), ".");
  if (!to.defined()) return;
  if (!from.defined() || (from.numel() == 0 && to.numel() > 0)) {
    to.zero_();
    return;
  }
  if (to.sizes() != from.sizes())
    throwUnannounced("Result ", i, " was announced as ", to.scalar_type(),
                     to.sizes(), " and is ", from.scalar_type(), from.sizes(),
                     ".");
  writeBack(to, from);
}

void deliver(size_t i, const c10::IValue& output, const c10::IValue& result) {
  if (output.isTensor())
    return deliverTensor(i, output.toTensor(), result.toTensor());
  if (!output.isTensorList()) return;
  const auto to = tensorsInList(output), from = tensorsInList(result);
  if (to.size() != from.size())
    throwUnannounced("Result ", i, " has ", from.size(), " tensors; ",
                     to.size(), " were announced.");
  for (size_t j = 0; j < to.size(); ++j) deliverTensor(i, to[j], from[j]);
}

// [common.math.work] The device half of a call runs PyTorch's CPU kernel over device memory.
struct Work {
  c10::OperatorHandle kernel;
  Captured captured;   ///< the kernel's arguments and, last, the outputs
  uint16_t arguments;  ///< how many of these the kernel gets
  uint16_t inputs;     ///< how many of these are not outputs
  uint16_t outputs;    ///< how many there are
  std::optional<at::ScalarType> promoted;  ///< see `promotionOf`
  Modes modes = Modes();

  void operator()() const {
    Stack stack = captured.values(arguments);
    const size_t first = captured.size() - outputs;
    if (outputs > 0)
      promoteAsLaunched(kernel, stack, inputs,
                        promoted ? promoted : captured[first].dtype(),
                        modes.default_dtype);
    callCorrected(kernel, stack);
    for (size_t i = 0; i < outputs; ++i)
      deliver(i, captured[first + i].value(), stack[i]);
  }
};

// [common.math.promotion] The dtype of a given output does not decide in which dtype a kernel computes.
/// The dtype in which an `.out` form computes with integers, which its output
/// need not have; nothing for other calls.
std::optional<at::ScalarType> promotionOf(const c10::OperatorHandle& op,
                                          const Stack& arguments) {
  if (!hasOutputs(op) || !promotes(op)) return {};
  const Stack inputs(arguments.begin(), arguments.begin() + inputsOf(op));
  const auto tensors = tensorsOf(inputs);
  if (!std::all_of(tensors.begin(), tensors.end(), &isPromoted)) return {};
  const auto functional = functionalOf(op);
  if (!functional) return {};
  const Stack results = predict(*functional, inputs);
  if (results.empty() || !results[0].isTensor()) return {};
  return results[0].toTensor().scalar_type();
}

/// Operators of linear algebra have an argument that says whether the host
/// throws the error, and so must wait.
bool wantsError(const c10::OperatorHandle& op, const Stack& arguments) {
  const auto asks = op.schema().argumentIndexWithName("check_errors");
  return !asks || arguments[*asks].toBool();
}

// [common.math.plan.accesses] The schema says which arguments are written, except for the running statistics of old norms, which only training writes.
bool updatesStatistics(const c10::OperatorHandle& op, const Stack& arguments) {
  if (op.schema().name().ends_with("_backward")) return false;
  const auto training = op.schema().argumentIndexWithName("training");
  return !training || arguments[*training].toBool();
}

Access accessOf(const c10::OperatorHandle& op, const Stack& arguments,
                size_t i) {
  const auto& all = op.schema().arguments();
  if (i >= all.size()) return Access::write;  // an output
  const c10::AliasInfo* alias = all[i].alias_info();
  const bool is_statistic = all[i].name().starts_with("running_");
  return (alias && alias->isWrite()) ||
                 (is_statistic && updatesStatistics(op, arguments))
             ? Access::write
             : Access::read;
}

// [common.math.plan.warn] A kernel on the device warns nobody, so the host warns of a deviation of too few elements.
void warnOfFreedom(const c10::OperatorHandle& op, const Stack& arguments,
                   const Stack& results) {
  const std::string_view name = op.schema().name();
  if (!name.starts_with("aten::std") && !name.starts_with("aten::var")) return;
  const auto place = op.schema().argumentIndexWithName("correction");
  if (!place) return;
  const c10::IValue& given = arguments[*place];
  const double correction = given.isNone() ? 1 : given.toScalar().toDouble();
  const int64_t outputs = results[0].toTensor().numel();
  const int64_t inputs = arguments[0].toTensor().numel();
  if (outputs > 0 && inputs / outputs > correction) return;
  TORCH_WARN(name.substr(6),
             "(): degrees of freedom is <= 0. Correction should be strictly "
             "less than the reduction factor (input numel divided by output "
             "numel).");
}

// [common.math.plan.make] Phase one ends with every argument checked and every size known.
}  // namespace

Plan::Plan(const Primitive& primitive, Stack arguments, orStream_t stream)
    : primitive_(primitive), arguments_(std::move(arguments)) {
  const c10::OperatorHandle& op = primitive_.op;
  prepareIndices(op, arguments_);
  if (primitive_.writes) checkWritten(op, arguments_);
  const SizesAre sizes = sizesOf(primitive_);
  if (sizes == SizesAre::computed) {
    checkOverlap(op, arguments_, /*structured=*/false);
    computed_ = std::make_shared<Stack>();
    const auto access = [&](size_t i) { return accessOf(op, arguments_, i); };
    runAndWait(op.schema().name().c_str(), stream,
               [op, to = computed_, from = Captured(arguments_, access)] {
                 *to = from.values(from.size());
                 callCorrected(op, *to);
               });
    results_ = *computed_;
  } else {
    results_ = sizes == SizesAre::passed ? passed(op, arguments_)
                                         : announce(primitive_, arguments_);
    if (primitive_.writes)
      checkOverlap(op, arguments_, primitive_.structured,
                   outputsToResize(op, arguments_, results_));
    checkTypes(op, arguments_, primitive_.structured ? Stack() : results_,
               primitive_.structured);
    if (primitive_.writes) resizeOutputs(op, arguments_, results_);
    warnOfFreedom(op, arguments_, results_);
  }
  if (!primitive_.writes) return;
  promoted_ = promotionOf(op, arguments_);
  for (size_t i = 0; i < results_.size(); ++i) {
    const c10::IValue* given = writtenFor(op, arguments_, i);
    if (!given) continue;
    if (computed_ && given->isTensor())  // The kernel has warned.
      resizeLike(given->toTensor(), results_[i].toTensor(), /*warns=*/false);
    results_[i] = *given;
  }
}

// [common.math.plan.enqueue] Phase two captures views of the arguments and outputs, and enqueues the kernel.
void Plan::enqueue(const Stack& outputs, orStream_t stream) {
  WithoutGil others_run;  // A full queue makes the host wait.
  const char* name = primitive_.op.schema().name().c_str();
  if (computed_) {
    const auto written = [](size_t) { return Access::write; };
    return check(launch(stream, name,
                        [from = computed_, to = Captured(outputs, written)] {
                          runKernel({}, [&] {
                            for (size_t i = 0; i < to.size(); ++i)
                              deliver(i, to[i].value(), (*from)[i]);
                          });
                        }));
  }
  const bool with_out = primitive_.with_out.has_value();
  const size_t own = arguments_.size();
  const bool waits =
      primitive_.may_fail && wantsError(primitive_.op, arguments_);
  arguments_.insert(arguments_.end(), outputs.begin(), outputs.end());
  const auto access = [&](size_t i) {
    return i < own ? accessOf(primitive_.op, arguments_, i) : Access::write;
  };
  // Made where it is needed, because moving arguments takes time.
  const auto work = [&] {
    return Work{primitive_.with_out.value_or(primitive_.op),
                Captured(arguments_, access),
                static_cast<uint16_t>(with_out ? arguments_.size() : own),
                static_cast<uint16_t>(inputsOf(primitive_.op)),
                static_cast<uint16_t>(outputs.size()),
                promoted_};
  };
  static_assert(sizeof(Work) <= orMaxArgumentBytes);
  if (waits) return runAndWait(name, stream, work());
  check(launch(stream, name,
               [work = work()] { runKernel(work.modes, [&] { work(); }); }));
}

// [-]
}  // namespace openreg::math
