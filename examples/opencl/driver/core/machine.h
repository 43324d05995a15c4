// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/handle_table.h"
#include "torch_openreg/examples/opencl/driver/core/cl_error.h"
#include "torch_openreg/examples/opencl/driver/core/survey.h"
#include "torch_openreg/examples/opencl/driver/execution/host_functions.h"
#include "torch_openreg/examples/opencl/driver/execution/stream.h"
#include "torch_openreg/examples/opencl/driver/memory/memory.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace openreg::hardware {

// [opencl.machine.device] A device has its streams, and an error that stays.
struct Device {
  int index = 0;
  cl_device_id id = nullptr;
  DeviceInfo info{};
  HostFunctions host_functions;

  orStream_t defaultStream();
  /// A new stream; null, with the last error set, if that fails.
  orStream_t createStream(int priority);
  void addRetired(EventRef last);
  /// Waits for all commands of all streams, including destroyed ones.
  void synchronize();

  /// Stops the device for the reason `code`, unless it has stopped already.
  void stop(cl_int code);
  /// orSuccess, or the error for which the device stopped.
  orError_t report();
  bool isLost() const { return error_ == orErrorDeviceLost; }
  /// Forgets the error, unless the device is lost.
  orError_t reset();

 private:
  std::mutex mutex_;
  std::once_flag once_;
  orStream_t default_stream_ = nullptr;
  std::vector<orStream_t> streams_;
  std::vector<EventRef> retired_;
  std::atomic<orError_t> error_{orSuccess};
  std::string detail_;
};

// [opencl.machine] One context holds all devices, so one device can wait for an event of another.
struct Machine {
  Machine();

  cl_context context = nullptr;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Memory> memory;
  HandleTable<Stream, orStream_t> streams;
  HandleTable<Event, orEvent_t> events;
};

/// Starts the machine when it is first called. It is never destroyed.
Machine& machine();

// [opencl.machine.check] Every call makes these checks before it does anything.
/// orSuccess if the configuration is valid and there is a device.
orError_t checkConfiguration();
/// Refuses calls in a forked child and without devices, and starts the machine.
orError_t enter();
orError_t checkDevice(int index);
/// orErrorNotPermitted in a host function.
orError_t checkMayWait();
/// Waits for all commands of all devices.
void synchronizeAll();

int& currentIndex();
Device& current();

// [-]
}  // namespace openreg::hardware
