// SPDX-License-Identifier: BSD-3-Clause
// The operators `new` and `delete` of a program whose memory can end. One of
// its files includes this.
#pragma once

#include "torch_openreg/tests/openreg/scarce.h"

#include <cstdlib>
#include <new>

namespace scarce {

static bool isConcerned() {
  const std::thread::id one = only;
  return one == std::thread::id() || one == std::this_thread::get_id();
}

static void* allocate(size_t size, size_t alignment) {
  if (left != kAll && isConcerned() && left-- <= 0) {
    failed = true;
    left = fails_once ? kAll : 0;
    throw std::bad_alloc();
  }
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded ? rounded : alignment);
}

}  // namespace scarce

// The compiler does not see that these are a pair.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t size) { return scarce::allocate(size, 16); }
void* operator new(size_t size, std::align_val_t alignment) {
  return scarce::allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept {
  std::free(pointer);
}
void operator delete(void* pointer, size_t, std::align_val_t) noexcept {
  std::free(pointer);
}
