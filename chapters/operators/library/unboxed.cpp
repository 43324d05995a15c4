// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/library/unboxed.h"
#include "torch_openreg/common/math/kernels/kernels.h"

#include <ATen/CPUFunctions.h>
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_meta.h>
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/index_meta.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_forward_meta.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/threshold_backward_meta.h>

#include <optional>
#include <unordered_map>

namespace openreg {

// [operators.unboxed.names] The name of an in-place form has an underscore before the overload's name.
std::string inPlaceName(std::string name) {
  return name.insert(std::min(name.find('.'), name.size()), 1, '_');
}

// [operators.unboxed.summand] The kernel of a product expands the summand, so its sizes are checked before the launch.
struct Addmm : at::meta::structured_addmm {
  void meta(const at::Tensor& self, const at::Tensor& mat1,
            const at::Tensor& mat2, const at::Scalar& beta,
            const at::Scalar& alpha) {
    structured_addmm::meta(self, mat1, mat2, beta, alpha);
    checkSummand(self, maybe_get_output(0).sizes());
  }
};

// [operators.unboxed.table] Elementwise operators check overlap in their meta function, so their in-place forms can be here too.
namespace {

using Kernels = std::unordered_map<c10::OperatorHandle, c10::KernelFunction>;

template <auto function>
c10::KernelFunction kernelFrom() {
  using Type = std::remove_pointer_t<decltype(function)>;
  return c10::KernelFunction::makeFromUnboxedFunction(
      c10::CompileTimeFunctionPointer<Type, function>());
}

template <Name name, auto meta, typename MetaOf<meta>::Out out_form>
void addForms(Kernels& kernels) {
  using Both = Unboxed<name, meta, out_form>;
  kernels.emplace(math::findOperator(name.text).value(),
                  kernelFrom<&Both::functional>());
  if constexpr (MetaOf<meta>::is_elementwise) {
    if (const auto in_place = math::findOperator(inPlaceName(name.text)))
      kernels.emplace(*in_place, kernelFrom<&Both::inPlace>());
  }
}

/// Of an operator with two results, which has no in-place form.
template <Name name, auto meta, typename MetaOf<meta>::OutOfTwo out_form>
void addForms(Kernels& kernels) {
  kernels.emplace(math::findOperator(name.text).value(),
                  kernelFrom<&Unboxed<name, meta, out_form>::functional>());
}

// [operators.unboxed.list] These are the structured operators among those that the models of our tests call most.
void addElementwise(Kernels& all) {
  using namespace at::meta;
  namespace cpu = at::cpu;
  addForms<"mul.Tensor", &structured_mul_Tensor::meta, &cpu::mul_outf>(all);
  addForms<"div.Tensor", &structured_div_Tensor::meta, &cpu::div_outf>(all);
  addForms<"sub.Tensor", &structured_sub_Tensor::meta, &cpu::sub_outf>(all);
  addForms<"addcdiv", &structured_addcdiv::meta, &cpu::addcdiv_outf>(all);
  addForms<"addcmul", &structured_addcmul::meta, &cpu::addcmul_outf>(all);
  addForms<"lerp.Scalar", &structured_lerp_Scalar::meta, &cpu::lerp_outf>(all);
  addForms<"pow.Tensor_Scalar", &structured_pow_Tensor_Scalar::meta,
           &cpu::pow_outf>(all);
  addForms<"sqrt", &structured_sqrt::meta, &cpu::sqrt_outf>(all);
  addForms<"rsqrt", &structured_rsqrt::meta, &cpu::rsqrt_outf>(all);
  addForms<"neg", &structured_neg::meta, &cpu::neg_outf>(all);
  addForms<"exp", &structured_exp::meta, &cpu::exp_outf>(all);
  addForms<"cos", &structured_cos::meta, &cpu::cos_outf>(all);
  addForms<"sin", &structured_sin::meta, &cpu::sin_outf>(all);
  addForms<"tanh", &structured_tanh::meta, &cpu::tanh_outf>(all);
  addForms<"sigmoid", &structured_sigmoid::meta, &cpu::sigmoid_outf>(all);
  addForms<"silu", &structured_silu::meta, &cpu::silu_outf>(all);
  addForms<"gelu", &structured_gelu::meta, &cpu::gelu_outf>(all);
  addForms<"gelu_backward", &structured_gelu_backward::meta,
           &cpu::gelu_backward_outf>(all);
  addForms<"threshold_backward", &structured_threshold_backward::meta,
           &cpu::threshold_backward_outf>(all);
}

// [operators.unboxed.trusted] The CPU's kernel trusts the classes, so this path checks them as the library does.
at::Tensor& lossBackward(const at::Tensor& grad, const at::Tensor& self,
                         const at::Tensor& target,
                         const std::optional<at::Tensor>& weight,
                         int64_t reduction, int64_t ignored,
                         const at::Tensor& total_weight, at::Tensor& out) {
  checkTargets(self, target, ignored);
  return at::cpu::nll_loss_backward_outf(grad, self, target, weight, reduction,
                                         ignored, total_weight, out);
}

// [operators.unboxed.list-others] The others are products, reductions, softmax, and two that take lists of tensors.
void addOthers(Kernels& all) {
  using namespace at::meta;
  namespace cpu = at::cpu;
  addForms<"mm", &structured_mm::meta, &cpu::mm_outf>(all);
  addForms<"bmm", &structured_bmm::meta, &cpu::bmm_outf>(all);
  addForms<"addmm", &Addmm::meta, &cpu::addmm_outf>(all);
  addForms<"cat", &structured_cat::meta, &cpu::cat_outf>(all);
  addForms<"index.Tensor", &structured_index_Tensor::meta, &cpu::index_outf>(
      all);
  addForms<"sum.dim_IntList", &structured_sum_dim_IntList::meta,
           &cpu::sum_outf>(all);
  addForms<"mean.dim", &structured_mean_dim::meta, &cpu::mean_outf>(all);
  addForms<"_softmax", &structured__softmax::meta, &cpu::_softmax_outf>(all);
  addForms<"_log_softmax", &structured__log_softmax::meta,
           &cpu::_log_softmax_outf>(all);
  addForms<"_log_softmax_backward_data",
           &structured__log_softmax_backward_data::meta,
           &cpu::_log_softmax_backward_data_outf>(all);
  addForms<"nll_loss_forward", &structured_nll_loss_forward::meta,
           &cpu::nll_loss_forward_outf>(all);
  addForms<"nll_loss_backward", &structured_nll_loss_backward::meta,
           &lossBackward>(all);
}

// [operators.unboxed.find] The handles are found once, while the library registers its operators.
}  // namespace

const c10::KernelFunction* unboxedKernel(const c10::OperatorHandle& op) {
  static const Kernels& kernels = *[] {
    auto* all = new Kernels;
    addElementwise(*all);
    addOthers(*all);
    return all;
  }();
  const auto found = kernels.find(op);
  return found == kernels.end() ? nullptr : &found->second;
}

// [-]
}  // namespace openreg
