// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/poison.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <string_view>

namespace openreg {

// [device.poison.switch] The environment variable takes two values.
static bool readSwitch() {
  const char* text = std::getenv("OPENREG_POISON");
  const std::string_view value = text ? text : "";
  TORCH_CHECK_VALUE(value.empty() || value == "0" || value == "1",
                    "OPENREG_POISON=", value, " is not allowed; it must be 1 ",
                    "to overwrite memory that is freed, or 0.");
  return value == "1";
}

bool poisonsFreedMemory() {
  static const bool poisons = readSwitch();
  return poisons;
}

// [device.poison.overwrite] The device overwrites the block behind all work that may still use it.
void poison(const Block* block) {
  orMemsetAsync(block->data, 0xFF, block->size, nativeStream(block->stream));
}

// [-]
}  // namespace openreg
