// SPDX-License-Identifier: BSD-3-Clause
#include <Python.h>

#include "chapters.h"

// [python.module] Python looks for this function; the next library does the work.
/// Calling a function of the next library, and not merely linking it, is what
/// makes the linker keep it.
PyObject* openregInitModule(const char* const* chapters);

PyMODINIT_FUNC PyInit__C(void) { return openregInitModule(kChapters); }

// [-]
