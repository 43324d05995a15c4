// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/accesses.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>

// [common.accesses.tensors] Every compiled program includes this header, and PyTorch's header of tensors takes as long to compile as the program.
namespace at {
class Tensor;
class TensorBase;
}  // namespace at

namespace openreg {

// [common.accesses] A launch announces what its kernel touches, for the driver's sanitizer.
/// What a kernel may do with a tensor. What is not known to be read only counts
/// as written.
enum class Access { read, write };

/// Tells the driver, wanted or not.
void announceToDriver(const at::TensorBase& tensor, Access access);
/// The next kernel that this thread enqueues touches the bytes of `tensor`.
inline void announceAccess(const at::TensorBase& tensor, Access access) {
  if (accessesAreWanted()) announceToDriver(tensor, access);
}
/// It touches the block at `data`, of which nothing else is known.
void announceBlock(const void* data, Access access);

// [common.accesses.signature] A kernel takes the tensors that it writes by value, and those that it only reads by constant reference.
template <class Return, class Kernel, class... Arguments>
constexpr std::array<Access, sizeof...(Arguments)> accessesOf(
    Return (Kernel::*)(Arguments...) const) {
  return {(std::is_same_v<Arguments, const at::Tensor&> ? Access::read
                                                        : Access::write)...};
}

/// The same of a kernel that is no template; of a template, only the launch
/// could tell, so it counts as writing all `count` tensors.
template <class Kernel, size_t count>
constexpr std::array<Access, count> accessesOfKernel() {
  if constexpr (requires { &Kernel::operator(); }) {
    return accessesOf(&Kernel::operator());
  } else {
    std::array<Access, count> all{};
    all.fill(Access::write);
    return all;
  }
}

// [-]
}  // namespace openreg
