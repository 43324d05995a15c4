// SPDX-License-Identifier: BSD-3-Clause
// Loaded before all others, makes an OpenCL runtime that fails in the way that
// BROKEN_RUNTIME names, which a program may set while it runs.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace {

bool fails(const char* way) {
  const char* chosen = std::getenv("BROKEN_RUNTIME");
  return chosen && std::strcmp(chosen, way) == 0;
}

template <class Function>
Function* real(const char* name) {
  static void* const library = dlopen("libOpenCL.so.1", RTLD_LAZY);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

extern "C" {

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
                      cl_uint entries, cl_device_id* devices, cl_uint* count) {
  if (fails("ends")) std::abort();
  static auto* const call = real<decltype(clGetDeviceIDs)>("clGetDeviceIDs");
  return call(platform, type, entries, devices, count);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size,
                       void* value, size_t* length) {
  static auto* const call = real<decltype(clGetDeviceInfo)>("clGetDeviceInfo");
  const cl_int code = call(device, name, size, value, length);
  const auto deny = [&] { *static_cast<cl_bool*>(value) = CL_FALSE; };
  if (name == CL_DEVICE_COMPILER_AVAILABLE && fails("compiler")) deny();
  if (name == CL_DEVICE_AVAILABLE && fails("available")) deny();
  if (name == CL_DEVICE_ENDIAN_LITTLE && fails("order")) deny();
  if (name == CL_DEVICE_VERSION && fails("version"))
    std::strcpy(static_cast<char*>(value), "OpenCL 1.1 old");
  return code;
}

cl_context clCreateContext(const cl_context_properties* properties,
                           cl_uint count, const cl_device_id* devices,
                           void(CL_CALLBACK* notify)(const char*, const void*,
                                                     size_t, void*),
                           void* data, cl_int* code) {
  static auto* const call = real<decltype(clCreateContext)>("clCreateContext");
  if (!fails("context"))
    return call(properties, count, devices, notify, data, code);
  *code = CL_OUT_OF_RESOURCES;
  return nullptr;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                      void* host, cl_int* code) {
  static auto* const call = real<decltype(clCreateBuffer)>("clCreateBuffer");
  if (!fails("memory")) return call(context, flags, size, host, code);
  *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return nullptr;
}

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  static auto* const call = real<decltype(clWaitForEvents)>("clWaitForEvents");
  if (fails("lost")) return CL_DEVICE_NOT_AVAILABLE;
  if (fails("stops")) return CL_OUT_OF_RESOURCES;
  return call(count, events);
}
}
