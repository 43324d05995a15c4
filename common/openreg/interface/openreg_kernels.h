// SPDX-License-Identifier: BSD-3-Clause
// What only a device has whose kernels are functions of the host's program and
// can reach device memory by address. A vendor's kernels replace this header.
#pragma once

#include "openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.kernels] A kernel is a function pointer and the bytes of its arguments.
/// How to run one kind of kernel. Must outlive every launch.
typedef struct orKernel {
  /// The name that error messages use.
  const char* name;
  /// The size of its arguments in bytes; at most `orMaxArgumentBytes`.
  size_t bytes;
  /// Moves arguments into the queue.
  void (*move)(void* to, void* from);
  /// Runs on a thread of the device.
  void (*run)(void* arguments);
  /// Called once for arguments that were moved, whether they ran or not.
  void (*destroy)(void* arguments);
} orKernel;

enum { orMaxArgumentBytes = 1792 };

/// Enqueues a kernel; `name`, unless null, replaces `kernel->name` and must
/// outlive the launch.
OPENREG_EXPORT orError_t orLaunchCommand(const orKernel* kernel,
                                         const char* name, void* arguments,
                                         orStream_t stream) OPENREG_NOEXCEPT;

// [common.kernels.window] A kernel reaches device memory at a constant distance from the address that orMalloc returned.
/// The distance in bytes. 0 if the devices do not start.
OPENREG_EXPORT ptrdiff_t orDeviceWindow(void) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

namespace openreg {

// [common.kernels.on-device] Device code adds the window to an address before following it.
/// The address under which a kernel reaches what `orMalloc` returned as
/// `pointer`. Only for code that runs on the device.
template <class T>
T* onDevice(T* pointer) {
  static const ptrdiff_t window = orDeviceWindow();
  return pointer ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) +
                                        window)
                 : nullptr;
}

// [common.kernels.closure] Any callable is a kernel, and its captures are the arguments.
template <class Closure>
struct KernelOf {
  static void move(void* to, void* from) {
    new (to) Closure(std::move(*static_cast<Closure*>(from)));
  }
  static void run(void* arguments) { (*static_cast<Closure*>(arguments))(); }
  static void destroy(void* arguments) {
    static_cast<Closure*>(arguments)->~Closure();
  }
  static constexpr orKernel kernel{"kernel", sizeof(Closure), &move, &run,
                                   &destroy};
};

// [common.kernels.refusal] A kernel throws this type to refuse its arguments; every other exception stops the device.
/// What the kernel has written so far stays written, and later kernels run. The
/// next call that waits for the stream, or finds it done, returns
/// `orErrorKernelRefused`.
struct OPENREG_EXPORT Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// [common.kernels.launch] A callable that is too large for a command moves to the heap.
/// Enqueues `body()` on `stream`. `name` must outlive the launch; error
/// messages quote it.
template <class Body>
orError_t launch(orStream_t stream, const char* name, Body body) {
  if constexpr (sizeof(Body) <= orMaxArgumentBytes &&
                alignof(Body) <= alignof(std::max_align_t)) {
    return orLaunchCommand(&KernelOf<Body>::kernel, name, &body, stream);
  } else {
    auto boxed = [heap = std::make_unique<Body>(std::move(body))] {
      (*heap)();
    };
    return orLaunchCommand(&KernelOf<decltype(boxed)>::kernel, name, &boxed,
                           stream);
  }
}

// [-]
}  // namespace openreg

#endif
