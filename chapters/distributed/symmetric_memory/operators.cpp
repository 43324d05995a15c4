// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp>
#include <torch/library.h>

namespace openreg {
namespace {

// [distributed.symmetric.operators] Between two barriers, every rank may read what the others have written.
namespace symm = c10d::symmetric_memory;

/// The operators use two channels, so a program's own barriers on channel 2 or
/// above do not meet them. PyTorch's programs in Python use the same two. On
/// CUDA each block of threads has one: as many as the kernel has blocks.
enum Channel { kBegin, kEnd };

/// The group's blocks behind `tensor`.
/// @throws c10::ValueError if the tensor is not in symmetric memory or not
/// contiguous, c10::NotImplementedError for another reduction than "sum".
c10::intrusive_ptr<symm::SymmetricMemory> groupOf(const at::Tensor& tensor,
                                                  const std::string& reduction,
                                                  const std::string& group) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      reduction == "sum", "Symmetric memory is reduced with sum, and not with ",
      reduction, ".");
  TORCH_CHECK_VALUE(tensor.is_contiguous(),
                    "A tensor in symmetric memory must be contiguous.");
  return symm::rendezvous(tensor, group);
}

/// The elements of rank `rank` at the place of `tensor`. A kernel reaches them
/// like its own.
at::Tensor onRank(int rank, const at::Tensor& tensor,
                  symm::SymmetricMemory& group) {
  return group.get_buffer(rank, tensor.sizes(), tensor.scalar_type(),
                          tensor.storage_offset());
}

// [distributed.symmetric.output] An output that does not fit would fail between the barriers, so it is refused before them.
/// @throws c10::ValueError unless the output is contiguous, of these sizes, and
/// of the dtype and device of the input.
void checkOutput(const at::Tensor& output, const at::Tensor& input,
                 at::IntArrayRef sizes) {
  TORCH_CHECK_VALUE(output.is_contiguous() && output.sizes() == sizes &&
                        output.scalar_type() == input.scalar_type() &&
                        output.device() == input.device(),
                    "The output must be contiguous, of sizes ", sizes, " and ",
                    input.scalar_type(), ", and on ", input.device(),
                    "; this one ",
                    output.is_contiguous() ? "is" : "is not contiguous,",
                    " of sizes ", output.sizes(), " and ", output.scalar_type(),
                    ", and on ", output.device(), ".");
}

// [distributed.symmetric.sum] All ranks add in the same order, so that they get identical bytes.
/// After a barrier, adds what `slice` takes from each rank's tensor, which has
/// the sizes of `out`. When it returns, other ranks may still be reading.
/// Half-precision numbers are added in float32.
template <class Slice>
at::Tensor sumOf(const at::Tensor& out, const at::Tensor& input,
                 symm::SymmetricMemory& group, const Slice& slice) {
  const at::Tensor sum = at::empty(
      out.sizes(), out.options().dtype(at::toOpMathType(out.scalar_type())));
  group.barrier(kBegin, 0);
  for (int r = 0; r < group.get_world_size(); ++r) {
    const at::Tensor part = slice(onRank(r, input, group));
    r == 0 ? sum.copy_(part) : sum.add_(part);
  }
  return sum;
}

// [distributed.symmetric.one-shot] In one shot, every rank reads all of every other rank's elements.
at::Tensor oneShotAllReduceOut(const at::Tensor& input, std::string reduction,
                               std::string name, at::Tensor out) {
  const auto group = groupOf(input, reduction, name);
  checkOutput(out, input, input.sizes());
  const at::Tensor sum =
      sumOf(out, input, *group, [](const at::Tensor& whole) { return whole; });
  group->barrier(kEnd, 0);
  return out.copy_(sum);  // The output may be the input, which all have read.
}

/// The same for a tensor that is copied into symmetric memory first.
at::Tensor oneShotAllReduceCopyOut(const at::Tensor& buffer,
                                   const at::Tensor& input,
                                   std::string reduction, std::string name,
                                   at::Tensor out) {
  TORCH_CHECK_VALUE(
      input.numel() <= buffer.numel() &&
          input.scalar_type() == buffer.scalar_type(),
      "The buffer in symmetric memory must have the dtype and at least as many "
      "elements as the input.");
  const at::Tensor copied =
      buffer.view(-1).narrow(0, 0, input.numel()).view(input.sizes());
  copied.copy_(input);
  return oneShotAllReduceOut(copied, reduction, name, out);
}

// [distributed.symmetric.two-shot] In two shots, a rank adds one slice, and then reads the sums of the others.
/// The elements of `tensor` for which rank `rank` adds.
at::Tensor sliceOf(int rank, const at::Tensor& tensor, int ranks) {
  const int64_t width = (tensor.numel() + ranks - 1) / ranks;
  const int64_t begin = std::min(rank * width, tensor.numel());
  const int64_t end = std::min(begin + width, tensor.numel());
  return tensor.view(-1).slice(0, begin, end);
}

/// In the first shot, only this rank reads the slice of its tensor for which it
/// adds, so the sum may replace it.
at::Tensor twoShotAllReduceOut(at::Tensor input, std::string reduction,
                               std::string name, at::Tensor output) {
  const auto group = groupOf(input, reduction, name);
  checkOutput(output, input, input.sizes());
  const int ranks = group->get_world_size(), ours = group->get_rank();
  const at::Tensor own = sliceOf(ours, input, ranks);
  own.copy_(sumOf(own, input, *group, [&](const at::Tensor& whole) {
    return sliceOf(ours, whole, ranks);
  }));
  group->barrier(kEnd, 0);
  for (int r = 0; r < ranks; ++r) {
    const at::Tensor to = sliceOf(r, output, ranks);
    const at::Tensor from = sliceOf(r, onRank(r, input, *group), ranks);
    if (to.data_ptr() != from.data_ptr()) to.copy_(from);
  }
  group->barrier(kEnd, 0);
  return output;
}

// [distributed.symmetric.reduce-scatter] A reduce_scatter is the first of the two shots.
/// Rank r gets part r of the first or the last dimension.
at::Tensor reduceScatterOut(at::Tensor input, std::string name, bool split_last,
                            at::Tensor output) {
  const auto group = groupOf(input, "sum", name);
  const int ranks = group->get_world_size();
  const int64_t dim = split_last ? input.dim() - 1 : 0;
  TORCH_CHECK_VALUE(input.dim() > 0 && input.size(dim) % ranks == 0,
                    "Dimension ", dim,
                    " of the input does not divide equally "
                    "across ",
                    ranks, " ranks.");
  const int64_t width = input.size(dim) / ranks;
  const int64_t begin = group->get_rank() * width;
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes[dim] = width;
  checkOutput(output, input, sizes);
  const at::Tensor sum = sumOf(
      output, input, *group,
      [&](const at::Tensor& whole) { return whole.narrow(dim, begin, width); });
  group->barrier(kEnd, 0);
  return output.copy_(sum);
}

// [distributed.symmetric.operators.register] PyTorch defines these operators, and has kernels for CUDA only.
TORCH_LIBRARY_IMPL(symm_mem, PrivateUse1, m) {
  using at::Tensor, std::string;
  m.impl("one_shot_all_reduce", [](const Tensor& in, string op, string group) {
    return oneShotAllReduceOut(in, op, group, at::empty_like(in));
  });
  m.impl("one_shot_all_reduce_out", &oneShotAllReduceOut);
  m.impl("one_shot_all_reduce_copy",
         [](const Tensor& buffer, const Tensor& in, string op, string group) {
           const Tensor out = at::empty_like(in, c10::MemoryFormat::Contiguous);
           return oneShotAllReduceCopyOut(buffer, in, op, group, out);
         });
  m.impl("one_shot_all_reduce_copy_out", &oneShotAllReduceCopyOut);
  m.impl("two_shot_all_reduce_", [](Tensor in, string op, string group) {
    return twoShotAllReduceOut(in, op, group, in);
  });
  m.impl("two_shot_all_reduce_out", &twoShotAllReduceOut);
  m.impl("reduce_scatter_out", &reduceScatterOut);
}

// [-]
}  // namespace
}  // namespace openreg
