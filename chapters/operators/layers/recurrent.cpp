// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <torch/library.h>

#include <vector>

namespace openreg {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Gates = std::vector<at::Tensor>;

// [operators.recurrent] On an out-of-tree device, LSTM and GRU call fused cells that have no CPU kernel.
/// The pre-activations with their bias, split into `count` gates.
Gates gates(const at::Tensor& sums, const at::Tensor& bias, int64_t count) {
  return (bias.defined() ? sums + bias : sums).chunk(count, 1);
}

void checkCell(const char* name, const at::Tensor& input,
               const at::Tensor& hidden, const at::Tensor& state,
               std::initializer_list<OptionalTensor> biases, int64_t count) {
  TORCH_CHECK(input.dim() == 2 && input.sizes() == hidden.sizes() &&
                  state.dim() == 2 && state.size(0) == input.size(0) &&
                  input.size(1) == count * state.size(1),
              name, " needs gates of one shape, ", count,
              " times as wide as the state; they are ", input.sizes(), " and ",
              hidden.sizes(), ", the state is ", state.sizes(), ".");
  for (const OptionalTensor& bias : biases) {
    if (!bias || !bias->defined()) continue;
    TORCH_CHECK(bias->sizes() == input.sizes().slice(1), name,
                " needs a bias as wide as the gates, ", input.size(1),
                "; it is ", bias->sizes(), ".");
  }
}

/// The workspace of a cell has `parts` columns for each column of the state.
void checkWorkspace(const char* name, const at::Tensor& workspace,
                    const at::Tensor& state, int64_t parts) {
  TORCH_CHECK(workspace.dim() == 2 && state.dim() == 2 &&
                  workspace.size(0) == state.size(0) &&
                  workspace.size(1) == parts * state.size(1),
              name, " needs a workspace ", parts, " times as wide as the ",
              "state; it is ", workspace.sizes(), ", the state is ",
              state.sizes(), ".");
}

// [operators.recurrent.lstm] One launch computes the cell and saves the gates for the backward pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCell(
    const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& cx,
    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  checkCell("_thnn_fused_lstm_cell", input, hidden, cx,
            {input_bias, hidden_bias}, 4);
  at::Tensor hy = at::empty_like(cx, at::MemoryFormat::Contiguous);
  at::Tensor cy = at::empty_like(hy), workspace = at::empty_like(input);
  launchKernel(
      "_thnn_fused_lstm_cell",
      [](at::Tensor hy, at::Tensor cy, at::Tensor workspace,
         const at::Tensor& input, const at::Tensor& hidden,
         const at::Tensor& cx, const at::Tensor& input_bias,
         const at::Tensor& hidden_bias) {
        auto a = gates(input, input_bias, 4), b = gates(hidden, hidden_bias, 4);
        const at::Tensor in = (a[0] + b[0]).sigmoid();
        const at::Tensor forget = (a[1] + b[1]).sigmoid();
        const at::Tensor cell = (a[2] + b[2]).tanh();
        const at::Tensor out = (a[3] + b[3]).sigmoid();
        cy.copy_(forget * cx + in * cell);
        hy.copy_(out * cy.tanh());
        at::cat_out(workspace, Gates{in, forget, cell, out}, 1);
      },
      hy, cy, workspace, input, hidden, cx, input_bias.value_or(at::Tensor()),
      hidden_bias.value_or(at::Tensor()));
  return {hy, cy, workspace};
}

// [operators.recurrent.lstm-backward] Either incoming gradient may be undefined; both biases have the same gradient.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCellBackward(
    const OptionalTensor& grad_hy, const OptionalTensor& grad_cy,
    const at::Tensor& cx, const at::Tensor& cy, const at::Tensor& workspace,
    bool has_bias) {
  checkWorkspace("_thnn_fused_lstm_cell_backward_impl", workspace, cx, 4);
  at::Tensor grad_gates = at::empty_like(workspace);
  at::Tensor grad_cx = at::empty_like(cx), grad_bias;
  if (has_bias) grad_bias = at::empty({workspace.size(1)}, workspace.options());
  launchKernel(
      "_thnn_fused_lstm_cell_backward",
      [](at::Tensor grad_gates, at::Tensor grad_cx, at::Tensor grad_bias,
         const at::Tensor& grad_hy, const at::Tensor& grad_cy,
         const at::Tensor& cx, const at::Tensor& cy,
         const at::Tensor& workspace) {
        auto gate = workspace.chunk(4, 1);
        const at::Tensor &in = gate[0], &forget = gate[1], &cell = gate[2],
                         &out = gate[3];
        const at::Tensor tanh = cy.tanh();
        at::Tensor hy = grad_hy.defined() ? grad_hy : tanh * 0;
        at::Tensor c = hy * out * (1 - tanh * tanh);
        if (grad_cy.defined()) c = c + grad_cy;
        at::cat_out(
            grad_gates,
            Gates{c * cell * in * (1 - in), c * cx * forget * (1 - forget),
                  c * in * (1 - cell * cell), hy * tanh * out * (1 - out)},
            1);
        grad_cx.copy_(c * forget);
        if (grad_bias.defined()) grad_bias.copy_(grad_gates.sum(0));
      },
      grad_gates, grad_cx, grad_bias, grad_hy.value_or(at::Tensor()),
      grad_cy.value_or(at::Tensor()), cx, cy, workspace);
  return {grad_gates, grad_cx, grad_bias};
}

// [operators.recurrent.gru] The reset gate scales the hidden part of the candidate, so that part is saved too.
std::tuple<at::Tensor, at::Tensor> gruCell(const at::Tensor& input,
                                           const at::Tensor& hidden,
                                           const at::Tensor& hx,
                                           const OptionalTensor& input_bias,
                                           const OptionalTensor& hidden_bias) {
  checkCell("_thnn_fused_gru_cell", input, hidden, hx,
            {input_bias, hidden_bias}, 3);
  at::Tensor hy = at::empty_like(hx, at::MemoryFormat::Contiguous);
  at::Tensor workspace =
      at::empty({hx.size(0), 5 * hx.size(1)}, input.options());
  launchKernel(
      "_thnn_fused_gru_cell",
      [](at::Tensor hy, at::Tensor workspace, const at::Tensor& input,
         const at::Tensor& hidden, const at::Tensor& hx,
         const at::Tensor& input_bias, const at::Tensor& hidden_bias) {
        auto a = gates(input, input_bias, 3), b = gates(hidden, hidden_bias, 3);
        const at::Tensor reset = (a[0] + b[0]).sigmoid();
        const at::Tensor update = (a[1] + b[1]).sigmoid();
        const at::Tensor candidate = (a[2] + reset * b[2]).tanh();
        hy.copy_(candidate + update * (hx - candidate));
        at::cat_out(workspace, Gates{reset, update, candidate, hx, b[2]}, 1);
      },
      hy, workspace, input, hidden, hx, input_bias.value_or(at::Tensor()),
      hidden_bias.value_or(at::Tensor()));
  return {hy, workspace};
}

// [operators.recurrent.gru-backward] The gradients of the input and hidden gates differ only in the candidate's third.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gruCellBackward(const at::Tensor& grad_hy, const at::Tensor& workspace,
                bool has_bias) {
  checkWorkspace("_thnn_fused_gru_cell_backward", workspace, grad_hy, 5);
  const int64_t width = workspace.size(1) / 5 * 3;
  at::Tensor grad_input =
      at::empty({workspace.size(0), width}, workspace.options());
  at::Tensor grad_hidden = at::empty_like(grad_input);
  at::Tensor grad_hx = at::empty_like(grad_hy), grad_a, grad_b;
  if (has_bias) {
    grad_a = at::empty({width}, workspace.options());
    grad_b = at::empty({width}, workspace.options());
  }
  launchKernel(
      "_thnn_fused_gru_cell_backward",
      [](at::Tensor grad_input, at::Tensor grad_hidden, at::Tensor grad_hx,
         at::Tensor grad_a, at::Tensor grad_b, const at::Tensor& grad,
         const at::Tensor& workspace) {
        auto saved = workspace.chunk(5, 1);
        const at::Tensor &reset = saved[0], &update = saved[1],
                         &candidate = saved[2], &hx = saved[3], &sum = saved[4];
        const at::Tensor n = grad * (1 - update) * (1 - candidate * candidate);
        const at::Tensor z = grad * (hx - candidate) * update * (1 - update);
        const at::Tensor r = n * sum * reset * (1 - reset);
        at::cat_out(grad_input, Gates{r, z, n}, 1);
        at::cat_out(grad_hidden, Gates{r, z, n * reset}, 1);
        grad_hx.copy_(grad * update);
        if (grad_a.defined()) grad_a.copy_(grad_input.sum(0));
        if (grad_b.defined()) grad_b.copy_(grad_hidden.sum(0));
      },
      grad_input, grad_hidden, grad_hx, grad_a, grad_b, grad_hy, workspace);
  return {grad_input, grad_hidden, grad_hx, grad_a, grad_b};
}

// [operators.recurrent.packed] Of a packed sequence, the host reads how many rows each step has.
/// A layer of PyTorch's, composed for every device, that takes `batch_sizes`.
void packedLayer(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const size_t place = *op.schema().argumentIndexWithName("batch_sizes");
  const at::Tensor& sizes = (*stack)[first + place].toTensor();
  TORCH_CHECK(sizes.is_cpu(), op.schema().name(),
              " needs batch_sizes on the CPU, where a packed sequence keeps "
              "them; they are on ",
              sizes.device(), ".");
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

constexpr const char* kPackedLayers[] = {"gru.data", "lstm.data",
                                         "rnn_relu.data", "rnn_tanh.data"};

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  for (const char* name : kPackedLayers)
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&packedLayer>());
}

// [operators.recurrent.register] PyTorch's gradient formulas call the two backward operators.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", &lstmCell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstmCellBackward);
  m.impl("_thnn_fused_gru_cell", &gruCell);
  m.impl("_thnn_fused_gru_cell_backward", &gruCellBackward);
  for (const char* name : kPackedLayers)
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&packedLayer>());
}

// [-]
}  // namespace
}  // namespace openreg
