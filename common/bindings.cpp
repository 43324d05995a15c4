// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/waiting.h"

#include <torch/csrc/Exceptions.h>
#include <unistd.h>

#include <string_view>

namespace openreg {

// [common.bindings.all] Later chapters may build on classes that earlier ones bound.
void ChapterBindings::bindAll(pybind11::module_& module,
                              const char* const* chapters) {
  for (; *chapters; ++chapters) {
    for (auto* bindings = newest(); bindings; bindings = bindings->next_) {
      if (bindings->chapter_ == std::string_view(*chapters))
        bindings->bind_(module);
    }
  }
}

// [common.bindings.errors] An error of c10 reaches Python as the class that PyTorch chooses for it.
static void translate(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(error);
  }
}

// [common.bindings.gil] The lock is released only by the thread that holds it, while Python lives.
static void* releaseGil() {
  if (!Py_IsInitialized() || !PyGILState_Check()) return nullptr;
  return PyEval_SaveThread();
}

static void takeGil(void* thread) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(thread));
}

// [common.bindings.signals] Python runs the handlers of signals on the main thread only, so no other one takes the lock for that.
static void runSignalHandlers() {
  if (getpid() != gettid() || !Py_IsInitialized()) return;
  pybind11::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// [-]
}  // namespace openreg

// [common.bindings.module] The module knows only the list of chapters; an error in a chapter's bindings becomes an ImportError.
extern "C" C10_EXPORT PyObject* openregInitModule(const char* const* chapters) {
  try {
    static PyModuleDef definition{};
    auto module = pybind11::module_::create_extension_module(
        "_C", "The C++ side of torch_openreg.", &definition);
    pybind11::register_local_exception_translator(&openreg::translate);
    openreg::setGil(
        {&openreg::releaseGil, &openreg::takeGil, &openreg::runSignalHandlers});
    openreg::ChapterBindings::bindAll(module, chapters);
    return module.release().ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
  return nullptr;
}

// [-]
