// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/standalone/privateuse1_observer.h>

#include <memory>
#include <unordered_set>
#include <utility>

namespace openreg {
namespace {

using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerStateBase;

// [profiler.emit] In this state PyTorch records nothing itself; each operator becomes a range of the driver.
struct EmitState final : ProfilerStateBase {
  explicit EmitState(const ProfilerConfig& config)
      : ProfilerStateBase(config) {}
  torch::profiler::impl::ActiveProfilerType profilerType() override {
    return torch::profiler::impl::ActiveProfilerType::PRIVATEUSE1;
  }
  void reportMemoryUsage(void*, int64_t, size_t, size_t, c10::Device) override {
  }
};

std::unique_ptr<at::ObserverContext> beginRange(
    const at::RecordFunction& function) {
  orRangePush(function.name());
  return nullptr;
}

void endRange(const at::RecordFunction&, at::ObserverContext*) { orRangePop(); }

// [profiler.emit.register] Without this function `ProfilerState.PRIVATEUSE1` would call a null pointer.
void pushCallbacks(const ProfilerConfig& config,
                   const std::unordered_set<at::RecordScope>& scopes) {
  auto state = std::make_shared<EmitState>(config);
  state->setCallbackHandle(at::addThreadLocalCallback(
      at::RecordFunctionCallback(&beginRange, &endRange).scopes(scopes)));
  ProfilerStateBase::push(std::move(state));
}

using torch::profiler::impl::RegisterPRIVATEUSE1Observer;
REGISTER_PRIVATEUSE1_OBSERVER(&pushCallbacks)

// [-]
}  // namespace
}  // namespace openreg
