// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <span>

namespace openreg {

// [common.check-types] Dtypes that the CPU's kernel does not accept are refused before the launch.
/// Decided once for each operator and each combination of dtypes. `results` are
/// those that the kernel will allocate. `structured` says that PyTorch has
/// already checked the sizes, so the kernel can safely be rehearsed over
/// smaller tensors.
/// @throws what the CPU's kernel throws, if the dtypes are the reason, because
/// it passes with other dtypes, or if it throws the same whatever the values.
void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments,
                c10::ArrayRef<c10::IValue> results, bool structured);

// [common.outputs] An output must be on the device, must not overlap, and must have the right size.
/// A kernel gets a host tensor by value, so it cannot write to one.
/// @throws c10::Error if `written` is not on a device of ours.
void checkWritten(const char* name, const at::Tensor& written);

/// @throws c10::Error if `op` writes to an argument that is on the host.
void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments);

/// @throws what the CPU throws if a tensor that `op` writes has several
/// elements at one address, or shares memory with another argument, and the
/// kernel does not allow it. `structured` says that PyTorch has already checked
/// the sizes. `resized` are the outputs that will be resized.
void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool structured,
                  size_t resized = 0);

// [common.outputs.sizes] Before an output is resized, the inputs in its memory are copied.
/// The argument that `op` returns as its result `i`; null if that is new.
const c10::IValue* writtenFor(const c10::OperatorHandle& op,
                              c10::ArrayRef<c10::IValue> arguments, size_t i);

/// Which arguments that `op` returns have other sizes than the announced
/// `results`: one bit for each, 0 if none have.
size_t outputsToResize(const c10::OperatorHandle& op,
                       c10::ArrayRef<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results);

/// Resizes these. Replaces each input that shares memory with one of them by a
/// copy.
/// @throws c10::Error in the CPU's words if an argument to be resized is
/// written in place, or is also an input of an elementwise operator.
void resizeOutputs(const c10::OperatorHandle& op,
                   std::span<c10::IValue> arguments,
                   c10::ArrayRef<c10::IValue> results);

/// Resizes `out` to the sizes of `like`. If they differ, `out` gets the strides
/// of `like` too, and PyTorch warns if `warns`, unless `out` was empty.
void resizeLike(const at::Tensor& out, const at::Tensor& like, bool warns);

// [common.indices] An assignment to indexed elements is refused on the host if the sizes of its indices or values do not fit.
/// Whether `index` selects elements instead of numbering them.
bool isMask(const at::Tensor& index);

/// If `op` is one of the operators that index: replaces masks by the numbers
/// that they select, and waits for the device, unless a mask is alone and the
/// operator writes.
/// @throws in the CPU's words if indices do not fit their tensor or each other,
/// or values do not fit what they are assigned to. How many elements a mask
/// selects is not known then, so any number of values fits.
void prepareIndices(const c10::OperatorHandle& op,
                    torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
