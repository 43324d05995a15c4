// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/trace/session.h"

#include <algorithm>

namespace openreg {
namespace {

using libkineto::ActivityType;

// [profiler.kineto.types] What happens on a device is ours alone; calls of the driver are also listed for the CPU.
const Session::Types kDeviceActivities = {
    ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
    ActivityType::GPU_MEMSET, ActivityType::GPU_USER_ANNOTATION};

const Session::Types kAllActivities = {
    ActivityType::CONCURRENT_KERNEL,   ActivityType::GPU_MEMCPY,
    ActivityType::GPU_MEMSET,          ActivityType::GPU_USER_ANNOTATION,
    ActivityType::PRIVATEUSE1_RUNTIME, ActivityType::PRIVATEUSE1_DRIVER};

// [profiler.kineto.configure] PyTorch asks for a session in each profile, and gets none if it wants nothing of the device.
class Profiler final : public libkineto::IActivityProfiler {
 public:
  using Session = std::unique_ptr<libkineto::IActivityProfilerSession>;
  using Types = openreg::Session::Types;

  const std::string& name() const override { return name_; }
  const Types& availableActivities() const override { return kAllActivities; }
  Session configure(const Types& wanted, const libkineto::Config&) override {
    const bool ours =
        std::any_of(kDeviceActivities.begin(), kDeviceActivities.end(),
                    [&](ActivityType type) { return wanted.count(type) > 0; });
    if (!ours || orIsForked()) return nullptr;
    return std::make_unique<openreg::Session>(wanted);
  }
  Session configure(int64_t, int64_t, const Types& wanted,
                    const libkineto::Config& config) override {
    return configure(wanted, config);
  }

 private:
  const std::string name_ = "openreg";
};

// [profiler.kineto.register] PyTorch passes the factory on to Kineto when the first profile starts.
using torch::profiler::impl::RegisterPrivateUse1Profiler;
REGISTER_PRIVATEUSE1_PROFILER(Profiler);

// [-]
}  // namespace
}  // namespace openreg
