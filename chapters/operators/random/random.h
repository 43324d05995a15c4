// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/common/math/interface/openreg_random.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace openreg {

// [operators.random] The math library says how many offsets a call needs, and the generator hands them out in program order.
using MaybeGenerator = std::optional<at::Generator>;

/// Reserves `count` offsets of `generator`, or of the device's default
/// generator if it is empty.
/// @throws c10::Error if the generator belongs to another device, or `self`
/// has several elements at one address.
math::RandomNumbers reserve(const at::Tensor& self,
                            const MaybeGenerator& generator, uint64_t count);

/// Reserves what `draw` needs, and enqueues it on the current stream of the
/// device of `self`, which it fills. Returns `self`.
at::Tensor& fill(at::Tensor& self, const MaybeGenerator& generator,
                 const math::Draw& draw);

// [-]
}  // namespace openreg
