// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/survey.h"

#include "torch_openreg/examples/opencl/driver/core/config.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace openreg::hardware {
namespace {

// [opencl.survey.property] OpenCL answers one question at a time, as bytes.
template <class T>
T property(cl_device_id device, cl_device_info name) {
  T value{};
  clGetDeviceInfo(device, name, sizeof(value), &value, nullptr);
  return value;
}

std::string text(cl_device_id device, cl_device_info name) {
  char value[256] = "";
  clGetDeviceInfo(device, name, sizeof(value) - 1, value, nullptr);
  return value;
}

// [opencl.survey.needs] A device is refused with the name of the feature that it lacks.
/// Empty if the device can be used.
std::string missingFeature(cl_device_id device) {
  const std::string version = text(device, CL_DEVICE_VERSION);
  int major = 0, minor = 0;
  std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor);
  if (10 * major + minor < 12) return "it has " + version + ", not 1.2";
  if (!property<cl_bool>(device, CL_DEVICE_AVAILABLE)) {
    return "the runtime says that it is not available";
  }
  if (!property<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE)) {
    return "it has no compiler for OpenCL C";
  }
  if (!property<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE)) {
    return "its bytes are in another order than the host's";
  }
  return "";
}

DeviceInfo describe(cl_device_id device, const char* platform) {
  DeviceInfo info{};
  std::snprintf(info.name, sizeof(info.name), "%s on %s",
                text(device, CL_DEVICE_NAME).c_str(), platform);
  const size_t memory = property<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.memory = std::min(memory, config().most_memory);
  info.largest_block = std::min<size_t>(
      property<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE), info.memory);
  info.units = property<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  return info;
}

// [opencl.survey.platform] All devices must belong to one platform, because only those can share a context.
std::vector<cl_device_id> findOn(cl_platform_id platform, Survey* survey) {
  char name[128] = "";
  clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name,
                    nullptr);
  cl_device_id all[64];
  cl_uint count = 0;
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, all, &count);
  std::vector<cl_device_id> found;
  for (cl_uint i = 0; i < std::min(count, 64u); ++i) {
    const DeviceInfo info = describe(all[i], name);
    const std::string missing = missingFeature(all[i]);
    if (std::string(info.name).find(config().devices) == std::string::npos) {
      continue;
    }
    if (!missing.empty()) {
      std::snprintf(survey->problem, sizeof(survey->problem),
                    "The OpenCL device %s cannot be used: %s.", info.name,
                    missing.c_str());
    } else if (survey->count < std::min(16, config().most_devices)) {
      survey->devices[survey->count++] = info;
      found.push_back(all[i]);
    }
  }
  return found;
}

// [opencl.survey.child] Asking a runtime for devices starts its threads, and a process with threads cannot fork safely, so a child asks.
Survey surveyInChild() {
  Survey result;
  std::snprintf(result.problem, sizeof(result.problem),
                "The OpenCL runtime ended the process that asked for devices.");
  int ends[2];
  if (pipe(ends) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    Survey found;
    findDevices(&found);
    const bool sent = ::write(ends[1], &found, sizeof(found)) == sizeof(found);
    _exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  Survey found;
  // A pipe holds 4096 bytes at least, so one read has the whole answer, if no
  // signal interrupts it.
  static_assert(sizeof(found) <= 4096);
  const ssize_t got =
      TEMP_FAILURE_RETRY(::read(ends[0], &found, sizeof(found)));
  if (got == sizeof(found)) result = found;
  ::close(ends[0]);
  if (child > 0) TEMP_FAILURE_RETRY(waitpid(child, nullptr, 0));
  return result;
}

// [-]
}  // namespace

// [opencl.survey.find] Without a device, the error says what the driver looked for.
std::vector<cl_device_id> findDevices(Survey* survey) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  clGetPlatformIDs(16, platforms, &count);
  *survey = {};
  for (cl_uint i = 0; i < std::min(count, 16u); ++i) {
    auto found = findOn(platforms[i], survey);
    if (found.empty()) continue;
    survey->problem[0] = '\0';
    return found;
  }
  if (survey->problem[0]) return {};
  if (count == 0) {
    std::snprintf(survey->problem, sizeof(survey->problem),
                  "There is no OpenCL runtime on this machine; install one, "
                  "for example pocl-opencl-icd.");
  } else if (config().devices.empty() || config().most_devices == 0) {
    std::snprintf(survey->problem, sizeof(survey->problem),
                  "This machine has no openreg device.");
  } else {
    std::snprintf(survey->problem, sizeof(survey->problem),
                  "No OpenCL device has \"%s\" in its name, as "
                  "OPENREG_OPENCL_DEVICES wants it.",
                  config().devices.c_str());
  }
  return {};
}

const Survey& survey() {
  static const Survey& survey = *new Survey(surveyInChild());
  return survey;
}

// [-]
}  // namespace openreg::hardware
