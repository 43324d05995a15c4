// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

namespace openreg {

// [common.launch.window] Device code sees device memory through its own window.
/// The address under which a kernel reaches what `orMalloc` returned as
/// `pointer`. Only for code that runs on the device.
template <class T>
T* onDevice(T* pointer) {
  static const ptrdiff_t window = orDeviceWindow();
  return pointer ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) +
                                        window)
                 : nullptr;
}

// [common.launch.closure] Any callable becomes a kernel, its captures the arguments.
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

// [common.launch] One call enqueues it.
/// Enqueues `body()` on `stream`. Captures larger than `orMaxArgumentBytes`
/// move to the heap. `name` must outlive the launch; errors quote it.
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

// [common.launch.function] The reference's way to launch, kept so that its programs compile.
/// Enqueues `function(arguments...)`; the arguments are copied.
template <class Function, class... Arguments>
orError_t orLaunchKernel(orStream_t stream, Function&& function,
                         Arguments&&... arguments) {
  return openreg::launch(
      stream, nullptr,
      [function = std::decay_t<Function>(std::forward<Function>(function)),
       arguments = std::make_tuple(std::forward<Arguments>(
           arguments)...)]() mutable { std::apply(function, arguments); });
}

// [-]
