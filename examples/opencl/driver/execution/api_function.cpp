// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"
#include "torch_openreg/examples/opencl/driver/interface/openreg_opencl.h"

#include <map>
#include <vector>

using namespace openreg::hardware;

// [opencl.function] A kernel object holds the arguments of its next launch, so each launch locks it.
struct orFunction {
  std::mutex mutex;
  cl_kernel kernel;
  std::string name;
};

namespace {

// [opencl.function.build] The compiler's log names the line of an error; our message adds the kernel and the device.
orError_t refuseProgram(cl_program program, const char* name) {
  for (const auto& device : machine().devices) {
    cl_build_status status = CL_BUILD_NONE;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_STATUS,
                          sizeof(status), &status, nullptr);
    if (status == CL_BUILD_SUCCESS) continue;
    size_t size = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                          &size);
    std::string log(size, '\0');
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size,
                          log.data(), nullptr);
    return fail(orErrorInvalidValue, "The kernel ", name,
                " does not compile for ", device->info.name, ": ", log.c_str());
  }
  return fail(orErrorUnknown, "The kernel ", name, " does not compile.");
}

orError_t build(cl_program* program, const char* source, const char* options,
                const char* name) {
  cl_int code;
  *program =
      clCreateProgramWithSource(machine().context, 1, &source, nullptr, &code);
  if (orError_t error = checkCl(code, "clCreateProgramWithSource")) {
    return error;
  }
  const std::string all = std::string("-cl-std=CL1.2 ") + options;
  code = clBuildProgram(*program, 0, nullptr, all.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return orSuccess;
  const orError_t error = refuseProgram(*program, name);
  clReleaseProgram(*program);
  return error;
}

// [opencl.function.cache] A program is compiled once for its source and options, by the first thread that needs it.
std::mutex mutex;
std::map<std::string, cl_program> programs;
std::map<std::string, std::unique_ptr<orFunction>> functions;

orError_t find(orFunction_t* function, const char* source, const char* options,
               const char* name) {
  const std::string program_key = std::string(options) + '\n' + source;
  std::lock_guard lock(mutex);
  auto& found = functions[std::string(name) + '\n' + program_key];
  if (found) {
    *function = found.get();
    return orSuccess;
  }
  auto program = programs.find(program_key);
  if (program == programs.end()) {
    cl_program built = nullptr;
    if (orError_t error = build(&built, source, options, name)) return error;
    program = programs.emplace(program_key, built).first;
  }
  cl_int code;
  const cl_kernel kernel = clCreateKernel(program->second, name, &code);
  if (code == CL_INVALID_KERNEL_NAME) {
    return fail(orErrorInvalidValue, "The source has no kernel ", name, ".");
  }
  if (orError_t error = checkCl(code, "clCreateKernel")) return error;
  found.reset(new orFunction{{}, kernel, name});
  *function = found.get();
  return orSuccess;
}

// [opencl.function.arguments] An address is translated to its buffer here, at the launch.
orError_t setArguments(orFunction& function, const orArgument* arguments,
                       size_t count, std::vector<MemoryRef>* buffers) {
  cl_uint place = 0;
  for (size_t i = 0; i < count; ++i) {
    const orArgument& argument = arguments[i];
    cl_int code = CL_SUCCESS;
    if (argument.size) {
      code = clSetKernelArg(function.kernel, place++, argument.size,
                            argument.value);
    } else {
      Place found = machine().memory->place(argument.value);
      if (!found.buffer) {
        return fail(orErrorInvalidValue, "Argument ", i, " of the kernel ",
                    function.name, ", ", argument.value,
                    ", is no address in device memory.");
      }
      const cl_mem buffer = found.buffer.get();
      const cl_ulong offset = found.offset;
      code = clSetKernelArg(function.kernel, place++, sizeof(buffer), &buffer);
      if (code == CL_SUCCESS) {
        code =
            clSetKernelArg(function.kernel, place++, sizeof(offset), &offset);
      }
      buffers->push_back(std::move(found.buffer));
    }
    if (code != CL_SUCCESS) {
      return fail(orErrorInvalidValue, "Argument ", i, " of the kernel ",
                  function.name, " does not fit: clSetKernelArg returned ",
                  clErrorName(code), " (", code, ").");
    }
  }
  return orSuccess;
}

// [-]
}  // namespace

// [opencl.function.launch] The arguments are locked until the command is enqueued, when OpenCL has copied them.
orError_t orFunctionGet(orFunction_t* function, const char* source,
                        const char* options, const char* name) noexcept try {
  if (orError_t error = enter()) return error;
  if (!function || !source || !options || !name) {
    return fail(orErrorInvalidValue,
                "orFunctionGet needs a place, a source, options and a name, "
                "not null.");
  }
  return find(function, source, options, name);
} catch (...) {
  return failWithException();
}

orError_t orFunctionLaunch(orFunction_t function, orStream_t handle,
                           unsigned dimensions, const size_t* global,
                           const size_t* local, const orArgument* arguments,
                           size_t count) noexcept try {
  if (orError_t error = enter()) return error;
  if (!function) {
    return fail(orErrorInvalidValue, "A launch needs a function, not null.");
  }
  LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  std::unique_lock lock(function->mutex);
  std::vector<MemoryRef> buffers;
  if (orError_t error = setArguments(*function, arguments, count, &buffers)) {
    return error;
  }
  return submit(std::move(stream), function->name.c_str(),
                [&](cl_command_queue queue, cl_event* event) {
                  const cl_int code = clEnqueueNDRangeKernel(
                      queue, function->kernel, dimensions, nullptr, global,
                      local, 0, nullptr, event);
                  lock.unlock();
                  return code;
                });
} catch (...) {
  return failWithException();
}

// [-]
