// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/trace/timeline.h"
#include "torch_openreg/chapters/device/runtime.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace openreg {
namespace {

using libkineto::ActivityType;
using ActivityTypes = std::set<ActivityType>;

// [profiler.session] Kineto makes one session for each profile, and calls these functions in this order.
template <class Clock>
int64_t timeNow() {
  const auto time = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(ActivityTypes wanted) : wanted_(std::move(wanted)) {}

  void start() override {
    // The driver counts from the start of the machine, PyTorch from 1970.
    clock_offset_ = timeNow<std::chrono::system_clock>() -
                    timeNow<std::chrono::steady_clock>();
    recorder_ = std::make_unique<Recorder>();
    status_ = libkineto::TraceStatus::RECORDING;
  }
  // On the thread of each operator, while the profile runs.
  void pushCorrelationId(uint64_t id) override { mine().ops.push_back(id); }
  void popCorrelationId() override { ThreadState::pop(mine().ops); }
  void pushUserCorrelationId(uint64_t id) override {
    mine().annotations.push_back(id);
  }
  void popUserCorrelationId() override { ThreadState::pop(mine().annotations); }
  void stop() override {
    if (recorder_) recorder_->stop();
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  // [profiler.session.properties] A trace is read elsewhere, so it says what machine it is of.
  std::string getDeviceProperties() override {
    std::string all;
    for (int index = 0; index < deviceCount(); ++index) {
      orDeviceProp properties;
      if (orGetDeviceProperties(&properties, index)) continue;
      all += (all.empty() ? "" : ", ");
      all += "{\"id\": " + std::to_string(index) + ", \"name\": \"" +
             properties.name + "\", \"totalGlobalMem\": " +
             std::to_string(properties.totalGlobalMem) + "}";
    }
    return all;
  }

  // [profiler.session.process] The logger keeps pointers, so slices live until PyTorch takes them over.
  void processTrace(libkineto::ActivityLogger& logger,
                    libkineto::getLinkedActivityCallback linked, int64_t begin,
                    int64_t end) override {
    if (!recorder_) return;
    trace_ = makeTrace(recorder_->entries(), wanted_, std::move(linked),
                       clock_offset_, {begin, end, "openreg"});
    for (const auto& slice : trace_.slices->activities) {
      logger.handleActivity(*slice);
    }
    for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
      logger.handleDeviceInfo({index, libkineto::kExceedMaxPid + index,
                               "openreg", "openreg:" + std::to_string(index)},
                              begin);
    }
  }
  void processTrace(libkineto::ActivityLogger&) override {}
  std::vector<std::string> errors() override { return {}; }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return nullptr;  // Only one device could be named here.
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    return trace_.tracks;
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(trace_.slices);
  }

 private:
  static ThreadState& mine() { return ThreadState::mine(); }

  const ActivityTypes wanted_;
  std::unique_ptr<Recorder> recorder_;
  Trace trace_;
  /// What PyTorch's clock says when the driver's says 0.
  int64_t clock_offset_ = 0;
};

// [profiler.kineto.types] What happens on a device is ours alone; calls of the driver are also listed for the CPU.
const ActivityTypes kDeviceActivities = {
    ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
    ActivityType::GPU_MEMSET, ActivityType::GPU_USER_ANNOTATION};

const ActivityTypes kAllActivities = {
    ActivityType::CONCURRENT_KERNEL,   ActivityType::GPU_MEMCPY,
    ActivityType::GPU_MEMSET,          ActivityType::GPU_USER_ANNOTATION,
    ActivityType::PRIVATEUSE1_RUNTIME, ActivityType::PRIVATEUSE1_DRIVER};

// [profiler.kineto.configure] PyTorch asks for a session in each profile, and gets none if it wants nothing of the device.
class Profiler final : public libkineto::IActivityProfiler {
 public:
  using SessionPtr = std::unique_ptr<libkineto::IActivityProfilerSession>;

  const std::string& name() const override { return name_; }
  const ActivityTypes& availableActivities() const override {
    return kAllActivities;
  }
  SessionPtr configure(const ActivityTypes& wanted,
                       const libkineto::Config&) override {
    const bool ours =
        std::any_of(kDeviceActivities.begin(), kDeviceActivities.end(),
                    [&](ActivityType type) { return wanted.count(type) > 0; });
    if (!ours || orIsForked()) return nullptr;
    return std::make_unique<Session>(wanted);
  }
  SessionPtr configure(int64_t, int64_t, const ActivityTypes& wanted,
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
