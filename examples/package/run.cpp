// SPDX-License-Identifier: BSD-3-Clause
// Runs a compiled model on the device: run FOLDER. No Python is loaded.
#include "torch_openreg/chapters/device/runtime.h"

#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

int main(int, char** arguments) {
  const std::filesystem::path folder(arguments[1]);
  c10::register_privateuse1_backend("openreg");

  std::ifstream file(folder / "weights.pt", std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const auto saved = torch::jit::pickle_load(bytes).toGenericDict();
  const auto onDevice = [&](const char* name, c10::DeviceIndex index) {
    return saved.at(name).toTensor().to(
        c10::Device(openreg::kDeviceType, index));
  };

  for (c10::DeviceIndex index = 0; index < openreg::deviceCount(); ++index) {
    torch::inductor::AOTIModelPackageLoader model(folder / "model.pt2", "model",
                                                  /*run_single_threaded=*/false,
                                                  /*num_runners=*/1, index);
    std::unordered_map<std::string, at::Tensor> constants;
    for (const std::string& name : model.get_constant_fqns())
      constants[name] = onDevice(name.c_str(), index);
    model.load_constants(constants, /*use_inactive=*/false,
                         /*check_full_update=*/true, /*user_managed=*/true);

    const auto scores = model.run({onDevice("images", index)})[0];
    std::cout << scores.device() << ':';
    const auto classes = scores.argmax(1).cpu();
    for (int64_t i = 0; i < classes.numel(); ++i)
      std::cout << ' ' << classes[i].item<int64_t>();
    std::cout << '\n';
  }
}
