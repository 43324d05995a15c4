// SPDX-License-Identifier: BSD-3-Clause
// What a backend needs to know of the math library. A vendor's library takes
// its place, with a header like this one.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <optional>
#include <vector>

namespace openreg::math {

// [common.math.sizes-from] The library learns the sizes of results in one of three ways.
/// Where it learns them.
enum class SizesAre {
  announced,  ///< PyTorch announces them from the arguments
  passed,     ///< the operator returns only arguments that it was given
  computed,   ///< they depend on the data, and the host waits for the result
};

// [common.math] The library computes a call in two phases: it checks the call and says what it will return, and later it enqueues the work.
/// An operator of PyTorch's that the library has, in one of its forms.
struct Primitive {
  c10::OperatorHandle op;  ///< whose schema says what the arguments are
  /// For a functional or in-place form that PyTorch derives from an `.out`
  /// form: that form, whose kernel writes the results where they belong.
  std::optional<c10::OperatorHandle> with_out;
  SizesAre sizes;   ///< where the sizes of its results come from
  bool structured;  ///< PyTorch checks all sizes when it announces results
  bool may_fail;    ///< it reports failures, such as a singular matrix
  bool writes;      ///< the schema marks an argument as written
};

/// All that the library has. They depend on the release of PyTorch and on
/// nothing that a backend registers.
const std::vector<Primitive>& primitives();

/// The primitive of `op`, which the library must have.
const Primitive& primitiveOf(const c10::OperatorHandle& op);

// [common.math.plan] A plan is one call between its two phases.
class Plan {
 public:
  /// Phase one, on the host. `arguments` are those of the schema; tensors must
  /// be on one device of ours or be host scalars. Outputs that were passed are
  /// resized, and inputs in their memory copied before. Enqueues nothing else
  /// and does not wait, unless the sizes are computed: then the operator runs
  /// on `stream`, and its results are kept.
  /// @throws what PyTorch throws for arguments that do not fit.
  Plan(const Primitive& primitive, torch::jit::Stack arguments,
       orStream_t stream);

  /// One for each result of the schema: a tensor that was passed, if the
  /// operator returns that, or a tensor on another device than ours, whose
  /// sizes, strides and dtype the result must have; and lists of these.
  const torch::jit::Stack& results() const { return results_; }

  /// Phase two, once: enqueues the work on `stream`. `outputs` are the results
  /// with memory. Waits if the operator may fail and its arguments do not ask
  /// to be silent about it.
  /// @throws such a failure, in PyTorch's words.
  void enqueue(const torch::jit::Stack& outputs, orStream_t stream);

 private:
  const Primitive& primitive_;
  torch::jit::Stack arguments_;
  torch::jit::Stack results_;
  std::shared_ptr<torch::jit::Stack> computed_;
  std::optional<at::ScalarType> promoted_;
};

// [-]
}  // namespace openreg::math
