// SPDX-License-Identifier: BSD-3-Clause
// What this driver has in the place of openreg_kernels.h: kernels are programs
// in OpenCL C, and the runtime compiles them.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [opencl.interface] A kernel is named, compiled from source, and launched over a grid of work items.
typedef struct orFunction* orFunction_t;

/// The kernel `name` of `source`, which is compiled with `options` when it is
/// first asked for. Valid until the process ends.
/// @returns orErrorInvalidValue, with the compiler's log in the detail, if the
/// source does not compile or has no kernel of that name.
OPENREG_EXPORT orError_t orFunctionGet(orFunction_t* function,
                                       const char* source, const char* options,
                                       const char* name) OPENREG_NOEXCEPT;

// [opencl.interface.argument] An address is passed to a kernel as a buffer and an offset into it.
/// If `size` is 0, `value` is an address in device memory, and the kernel gets
/// two arguments: `__global char*` and `ulong`, the offset in bytes. Otherwise
/// `value` points to `size` bytes that are copied.
typedef struct orArgument {
  const void* value;
  size_t size;
} orArgument;

/// Enqueues `function` over `global` work items in groups of `local`. Both have
/// `dimensions` numbers, and each of `global` is a multiple of that in `local`.
OPENREG_EXPORT orError_t
orFunctionLaunch(orFunction_t function, orStream_t stream, unsigned dimensions,
                 const size_t* global, const size_t* local,
                 const orArgument* arguments, size_t count) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
