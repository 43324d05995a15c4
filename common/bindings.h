// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/check.h"

#include <pybind11/pybind11.h>

namespace openreg {

// [common.bindings] One chapter's share of the Python module.
/// A chapter declares one static `ChapterBindings`. Linking the object is all
/// it takes to be bound, so `common/` never has to name a chapter.
class ChapterBindings {
 public:
  using Bind = void (*)(pybind11::module_&);  ///< adds names to `_C`

  /// `bind` is called when `_C` is imported, in the order of the chapters.
  ChapterBindings(const char* chapter, Bind bind)
      : chapter_(chapter), bind_(bind), next_(newest()) {
    newest() = this;
  }

  /// Runs the `Bind` of each of `chapters`, in this order; the last is null.
  static void bindAll(pybind11::module_& module, const char* const* chapters);

 private:
  // A function-local static exists before its first use, whichever
  // translation unit the loader happens to initialize first.
  static ChapterBindings*& newest() {
    static ChapterBindings* newest = nullptr;
    return newest;
  }

  const char* chapter_;
  Bind bind_;
  ChapterBindings* next_;
};

// [common.bindings.guards] A call guard is made before the bound function is called, and ends after it.
/// Refuses a forked child.
using Guarded = pybind11::call_guard<NotForked>;
/// Refuses a forked child, and releases the GIL during the call.
using Waits = pybind11::call_guard<NotForked, pybind11::gil_scoped_release>;

// [-]
}  // namespace openreg
