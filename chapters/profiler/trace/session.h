// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/profiler/trace/recorder.h"
#include "torch_openreg/chapters/profiler/trace/timeline.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace openreg {

// [profiler.session] Kineto makes one session for each profile, and calls these functions in this order.
class Session final : public libkineto::IActivityProfilerSession {
 public:
  using Types = std::set<libkineto::ActivityType>;  ///< as Kineto passes them

  /// Slices of other types are left out.
  explicit Session(Types wanted) : wanted_(std::move(wanted)) {}

  void start() override;
  // On the thread of each operator, while the profile runs.
  void pushCorrelationId(uint64_t id) override { pushOperator(id); }
  void popCorrelationId() override { popOperator(); }
  void pushUserCorrelationId(uint64_t id) override { pushAnnotation(id); }
  void popUserCorrelationId() override { popAnnotation(); }
  void stop() override;

  std::string getDeviceProperties() override;
  void processTrace(libkineto::ActivityLogger& logger,
                    libkineto::getLinkedActivityCallback linked, int64_t begin,
                    int64_t end) override;
  void processTrace(libkineto::ActivityLogger&) override {}
  std::vector<std::string> errors() override { return {}; }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return nullptr;  // Only one device could be named here.
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override;
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override;

 private:
  const Types wanted_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Timeline> timeline_;
  /// What PyTorch's clock says when the driver's says 0.
  int64_t clock_offset_ = 0;
};

// [-]
}  // namespace openreg
