// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/by_hand/structured.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/examples/opencl/kernels/rows.h"
#include "sources.h"

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/sum_meta.h>
#include <torch/library.h>

namespace openreg {

// [opencl.rows.cut] The sizes before and after the dimension are multiplied.
Rows::Rows(const at::Tensor& tensor, int64_t dim) {
  dim = at::maybe_wrap_dim(dim, tensor.dim());
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    (d < dim ? outer : d > dim ? inner : n) *= tensor.size(d);
  }
}

Target::Target(const at::Tensor& out, at::ScalarType dtype)
    : out_(out),
      tensor_(out.is_contiguous() && out.scalar_type() == dtype
                  ? out
                  : at::empty(out.sizes(), out.options().dtype(dtype))) {}

void Target::finish() const {
  if (!tensor_.is_same(out_)) out_.copy_(tensor_);
}

namespace {

// [opencl.reductions] A reduction has one expression that combines two numbers, and one that finishes the result.
struct Reduction {
  const char* first;
  const char* combine;
  const char* finish;
};

constexpr Reduction kSum{"0", "x + y", "(x)"};
constexpr Reduction kMean{"0", "x + y", "((x) / (C)scale)"};
constexpr Reduction kMost{"-INFINITY", "x != x || x > y ? x : y", "(x)"};

/// Reduces dimension 1 of `in`, which is dense, into `out`.
void reduceRows(const at::Tensor& out, const at::Tensor& in, const Rows& rows,
                const Reduction& reduction, double scale) {
  Program program(source::reduce, "reduce");
  program.operand("IN", in.scalar_type()).operand("OUT", out.scalar_type());
  const char* compute = dtypeOf(out.scalar_type())->compute;
  program.compute(compute)
      .define("LOAD", "LOAD_IN")
      .define("STORE", "STORE_OUT")
      .define("FIRST", reduction.first)
      .define("COMBINE", reduction.combine)
      .define("FINISH(x)", reduction.finish);
  Launch(program.function())
      .address(out)
      .address(in)
      .number(rows.outer)
      .number(rows.n)
      .number(rows.inner)
      .number(scale)
      .run(out.device().index(), rows.count(), 1, 64);
}

// [opencl.reductions.split] One long row would occupy one work item, so it is reduced in two steps.
constexpr int64_t kLongRow = 4096;

void reduceDense(const at::Tensor& out, const at::Tensor& in, Rows rows,
                 const Reduction& reduction) {
  const double scale = static_cast<double>(rows.n);
  const int64_t pieces = rows.n / kLongRow;
  if (rows.inner > 1 || rows.outer > 16 || pieces < 2 || rows.n % pieces != 0) {
    return reduceRows(out, in, rows, reduction, scale);
  }
  const Reduction partial{reduction.first, reduction.combine, "(x)"};
  const auto sums = dtypeOf(out.scalar_type())->compute[0] == 'f'
                        ? at::kFloat
                        : out.scalar_type();
  const at::Tensor between =
      at::empty({rows.outer, pieces}, out.options().dtype(sums));
  Rows first = rows;
  first.outer = rows.outer * pieces;
  first.n = rows.n / pieces;
  reduceRows(between, in, first, partial, scale);
  rows.n = pieces;
  reduceRows(out, between, rows, reduction, scale);
}

// [opencl.reductions.dims] The dimensions to reduce are moved next to each other, and a copy makes them dense if they are not.
bool reduce(const at::Tensor& self, at::IntArrayRef dims, const at::Tensor& out,
            const Reduction& reduction) {
  if (!knowsAll({self, out}) || self.numel() == 0) return false;
  const auto reduced = at::dim_list_to_bitset(
      dims.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims),
      self.dim());
  at::DimVector kept, order;
  int64_t n = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    (reduced[d] ? order : kept).push_back(d);
    if (reduced[d]) n *= self.size(d);
  }
  const Target target(out, out.scalar_type());
  const bool adjacent = order.empty() || order.back() - order.front() + 1 ==
                                             static_cast<int64_t>(order.size());
  at::Tensor dense = self;
  Rows rows(self.numel() / n, n, 1);
  if (adjacent && self.is_contiguous()) {
    for (int64_t d : kept) {
      if (!order.empty() && d > order.back()) rows.inner *= self.size(d);
    }
    rows.outer /= rows.inner;
  } else {
    kept.append(order.begin(), order.end());
    dense = self.permute(kept).contiguous();
  }
  reduceDense(target.tensor(), dense, rows, reduction);
  target.finish();
  return true;
}

// [opencl.reductions.operators] The functional forms call these with an output of the right size and dtype.
at::Tensor& sumOut(const at::Tensor& self, at::OptionalIntArrayRef dim,
                   bool keepdim, std::optional<at::ScalarType> dtype,
                   at::Tensor& out) {
  Structured<at::meta::structured_sum_dim_IntList>(out, true).meta(
      self, dim, keepdim, dtype);
  if (self.numel() == 0) return out.zero_();
  if (reduce(self, dim.value_or(at::IntArrayRef()), out, kSum)) return out;
  return OPENREG_FALLBACK(sum, IntList_out, self, dim, keepdim, dtype, out);
}

at::Tensor& meanOut(const at::Tensor& self, at::OptionalIntArrayRef dim,
                    bool keepdim, std::optional<at::ScalarType> dtype,
                    at::Tensor& out) {
  Structured<at::meta::structured_mean_dim>(out, true).meta(self, dim, keepdim,
                                                            dtype);
  if (at::isFloatingType(out.scalar_type()) &&
      reduce(self, dim.value_or(at::IntArrayRef()), out, kMean)) {
    return out;
  }
  return OPENREG_FALLBACK(mean, out, self, dim, keepdim, dtype, out);
}

// [opencl.reductions.largest] This operator returns the largest element and its index.
at::Tensor& amaxOut(const at::Tensor& self, at::IntArrayRef dim, bool keepdim,
                    at::Tensor& out) {
  Structured<at::meta::structured_amax>(out, true).meta(self, dim, keepdim);
  if (at::isFloatingType(out.scalar_type()) && reduce(self, dim, out, kMost)) {
    return out;
  }
  return OPENREG_FALLBACK(amax, out, self, dim, keepdim, out);
}

at::Tensor& argmaxOut(const at::Tensor& self, std::optional<int64_t> dim,
                      bool keepdim, at::Tensor& out) {
  Structured<at::meta::structured_argmax>(out, true).meta(self, dim, keepdim);
  if (!knowsAll({self}) || self.numel() == 0) {
    return OPENREG_FALLBACK(argmax, out, self, dim, keepdim, out);
  }
  const at::Tensor in = dim ? self.contiguous() : self.contiguous().view(-1);
  const Rows rows(in, dim.value_or(0));
  Program program(source::reduce, "index_of_largest");
  program.operand("IN", in.scalar_type()).define("LOAD", "LOAD_IN");
  program.compute(dtypeOf(in.scalar_type())->compute);
  program.define("STORE", "store_long").define("SIZE_OUT", "8");
  program.define("FIRST", "0").define("COMBINE", "x").define("FINISH(x)", "x");
  const Target target(out, at::kLong);
  Launch(program.function())
      .address(target.tensor())
      .address(in)
      .number(rows.outer)
      .number(rows.n)
      .number(rows.inner)
      .run(in.device().index(), rows.count(), 1, 64);
  target.finish();
  return out;
}

// [opencl.reductions.register] `max`, `norm` and the other reductions use the fallback.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("sum.IntList_out", &sumOut);
  m.impl("mean.out", &meanOut);
  m.impl("amax.out", &amaxOut);
  m.impl("argmax.out", &argmaxOut);
}

// [-]
}  // namespace
}  // namespace openreg
