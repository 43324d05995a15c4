// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/waiting.h"

#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace openreg {

using torch::inductor::AOTIModelContainerRunner;

// [compile.library.runner.names] PyTorch's part of a library accepts the names of four devices, so ours is loaded as the CPU with our index.
static std::string acceptedName(const std::string& device) {
  const auto index = c10::Device(device).index();
  return "cpu:" + std::to_string(index < 0 ? currentDevice() : index);
}

// [compile.library.runner.symbols] A library names no file that it needs, so the symbols of this one become visible to all.
static void showSymbols() {
  Dl_info ours;
  TORCH_INTERNAL_ASSERT(
      dladdr(reinterpret_cast<void*>(&showSymbols), &ours) &&
      dlopen(ours.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD));
}

// [compile.library.runner.constants] A copy of the constants would lie in memory of the host, so only those that the caller keeps are taken.
template <class... Arguments>
[[noreturn]] static AOTIRuntimeError refuseCopies(Arguments...) {
  TORCH_CHECK(false,
              "A library compiled for openreg cannot copy its constants to the "
              "device: move them there, and pass user_managed=True.");
}

// [compile.library.runner] The runner is PyTorch's, without the functions that copy, and without Python's lock.
class Runner final : public AOTIModelContainerRunner {
 public:
  Runner(const std::string& library, size_t models, const std::string& device,
         const std::string& folder, bool single_threaded)
      : AOTIModelContainerRunner(library, models, acceptedName(device), folder,
                                 single_threaded) {
    update_constant_buffer_func_ = &refuseCopies;
    update_constant_buffer_from_cpu_func_ = &refuseCopies;
    update_inactive_constant_buffer_func_ = &refuseCopies;
    update_constants_from_blob_func_ = &refuseCopies;
  }

 private:
  /// A call may wait for a model that another thread uses, and the two threads
  /// would wait for each other if one of them kept Python's lock.
  std::vector<at::Tensor> run_impl(std::vector<AtenTensorHandle>& inputs,
                                   void* stream) override {
    const WithoutGil others_run;
    return AOTIModelContainerRunner::run_impl(inputs, stream);
  }
};

// [compile.library.runner.register] PyTorch's loader finds the runner by the name of the device.
static torch::inductor::RegisterAOTIModelRunner runner_registration(
    "openreg",
    [](const std::string& library, size_t models, const std::string& device,
       const std::string& folder, const bool single_threaded)
        -> std::unique_ptr<AOTIModelContainerRunner> {
      showSymbols();
      return std::make_unique<Runner>(library, models, device, folder,
                                      single_threaded);
    });

// [-]
}  // namespace openreg
