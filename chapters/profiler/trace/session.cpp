// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/trace/session.h"
#include "torch_openreg/chapters/device/runtime.h"

#include <chrono>

namespace openreg {

// [profiler.session.clock] The driver counts from the start of the machine, PyTorch from 1970.
template <class Clock>
static int64_t timeNow() {
  const auto time = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

void Session::start() {
  clock_offset_ = timeNow<std::chrono::system_clock>() -
                  timeNow<std::chrono::steady_clock>();
  recorder_ = std::make_unique<Recorder>();
  status_ = libkineto::TraceStatus::RECORDING;
}

void Session::stop() {
  if (recorder_) recorder_->stop();
  status_ = libkineto::TraceStatus::PROCESSING;
}

// [profiler.session.process] The logger keeps pointers, so slices live until PyTorch takes them over.
void Session::processTrace(libkineto::ActivityLogger& logger,
                           libkineto::getLinkedActivityCallback linked,
                           int64_t begin, int64_t end) {
  if (!recorder_) return;
  timeline_ = std::make_unique<Timeline>(recorder_->entries(), wanted_,
                                         std::move(linked), clock_offset_);
  timeline_->write(logger, begin, end);
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    logger.handleDeviceInfo({index, libkineto::kExceedMaxPid + index, "openreg",
                             "openreg:" + std::to_string(index)},
                            begin);
  }
}

std::vector<libkineto::ResourceInfo> Session::getResourceInfos() {
  return timeline_ ? timeline_->tracks()
                   : std::vector<libkineto::ResourceInfo>{};
}

std::unique_ptr<libkineto::CpuTraceBuffer> Session::getTraceBuffer() {
  return timeline_ ? timeline_->takeSlices() : nullptr;
}

// [profiler.session.properties] A trace is read elsewhere, so it says what machine it is of.
std::string Session::getDeviceProperties() {
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

// [-]
}  // namespace openreg
