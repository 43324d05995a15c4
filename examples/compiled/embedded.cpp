// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/compiled/embedded.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

// [compiled.embedded.bytes] The two symbols of embed.S.
extern "C" const char deviceKernels[], deviceKernelsEnd[];

namespace openreg {
namespace {

// [compiled.embedded.load] The stand-in for the driver's function that loads a module: a file in memory, opened as a library.
void* load() {
  const size_t size = deviceKernelsEnd - deviceKernels;
  const int file = memfd_create("openreg-kernels", MFD_CLOEXEC);
  bool whole = file >= 0;
  for (size_t at = 0; whole && at < size;) {
    const ssize_t written = write(file, deviceKernels + at, size - at);
    whole = written > 0;
    at += whole ? size_t(written) : 0;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* const binary =
      whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (file >= 0) close(file);
  TORCH_CHECK(binary, "The device's kernels cannot be loaded: ",
              whole ? dlerror() : "there is no room for their binary.");
  return binary;
}

// [compiled.embedded.find] Loading at the first launch keeps the import of the package cheap.
}  // namespace

CompiledKernel findKernel(const char* name) {
  static void* const binary = load();
  void* const found = dlsym(binary, name);
  TORCH_CHECK(found, "The device's kernels do not contain ", name,
              "; add it to examples/compiled/device.");
  return reinterpret_cast<CompiledKernel>(found);
}

// [-]
}  // namespace openreg
