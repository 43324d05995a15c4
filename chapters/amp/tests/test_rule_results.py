# SPDX-License-Identifier: BSD-3-Clause
"""What the device returns under each of PyTorch's autocast rules; the CPU is the judge."""

import pytest
import torch
from test_rules import LOW, ROWS, RULES, WIDE, differences, overload


def t(*sizes):
    return torch.rand(sizes, generator=torch.Generator().manual_seed(sum(sizes))) * 0.8 + 0.1


def whole(*sizes):
    return torch.zeros(sizes, dtype=torch.int64)


def image(n):
    return t(1, 2, *[5] * n), t(3, 2, *[3] * n), t(3)


def transposed(n):
    return t(1, 2, *[5] * n), t(2, 3, *[3] * n), t(3)


CONVOLUTION = (*image(2), [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
V, M, B = t(4), t(4, 4), t(2, 4, 4)
LINE, PLANE, CUBE = t(1, 1, 4), t(1, 1, 4, 4), t(1, 1, 4, 4, 4)

# For each rule the arguments of its operator; operators that take the same stand together.
TABLE = [
    ((*CONVOLUTION, False, False, False), "_convolution.deprecated"),
    ((*CONVOLUTION, False, False, False, False), "_convolution"),
    (CONVOLUTION, "convolution"),
    (image(1), "conv1d"),
    (image(2), "conv2d"),
    (image(3), "conv3d"),
    (transposed(1), "conv_transpose1d"),
    (transposed(2), "conv_transpose2d.input"),
    (transposed(3), "conv_transpose3d.input"),
    ((t(5, 1, 2), t(3, 2, 4), V), "conv_tbc"),
    ((V, t(1)), "prelu"),
    ((M, M), "matmul mm linalg_vecdot"),
    ((M, M, V), "linear"),
    ((M, M, M), "addmm"),
    ((V, M, V), "addmv"),
    ((M, V, V), "addr"),
    ((M, V), "mv"),
    (("ij,jk->ik", [M, M]), "einsum"),
    ((M, B, B), "addbmm"),
    ((B, B, B), "baddbmm"),
    ((B, B), "bmm"),
    (([M, M, M],), "chain_matmul linalg_multi_dot"),
    ((M, M, M, M, V, V), "rnn_tanh_cell rnn_relu_cell"),
    ((M, [M, M], t(16, 4), t(16, 4), t(16), t(16)), "lstm_cell"),
    ((M, M, t(12, 4), t(12, 4), t(12), t(12)), "gru_cell"),
    ((t(4, 16), t(4, 16), M, t(16), t(16)), "_thnn_fused_lstm_cell"),
    ((t(4, 12), t(4, 12), M, t(12), t(12)), "_thnn_fused_gru_cell"),
    ((PLANE, PLANE, PLANE), "scaled_dot_product_attention"),
    ((V,), "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan"),
    ((V,), "softplus"),
    ((V, 1.5), "pow.Tensor_Scalar"),
    ((V, V), "pow.Tensor_Tensor"),
    ((1.5, V), "pow.Scalar"),
    ((M, [4], V, V), "layer_norm"),
    ((M, [4], V, V, 1e-5), "native_layer_norm"),
    ((M, [4], V), "rms_norm"),
    ((M, 2, V, V), "group_norm"),
    ((M, [1]), "frobenius_norm.dim logsumexp"),
    ((M,), "nuclear_norm pdist"),
    ((M, [0, 1]), "nuclear_norm.dim"),
    ((M, M, True, False, 1e-8, 1), "poisson_nll_loss"),
    ((M, whole(4)), "nll_loss multi_margin_loss"),
    ((M, whole(4, 4)), "multilabel_margin_loss"),
    ((t(1, 2, 3, 3), whole(1, 3, 3)), "nll_loss2d"),
    ((V, whole(4) + 1), "hinge_embedding_loss"),
    ((M, M.flip(0)), "cosine_similarity kl_div l1_loss smooth_l1_loss huber_loss mse_loss"),
    ((M, M.flip(0)), "soft_margin_loss binary_cross_entropy_with_logits dist cdist"),
    ((M, M.flip(0), whole(4) + 1), "cosine_embedding_loss"),
    ((V, V.flip(0), whole(4) + 1), "margin_ranking_loss"),
    ((M, M.flip(0), M.flip(1)), "triplet_margin_loss"),
    ((M, 2, 0, 1.0), "renorm"),
    ((LINE, [8]), "upsample_nearest1d _upsample_nearest_exact1d"),
    ((PLANE, [8, 8]), "upsample_nearest2d _upsample_nearest_exact2d"),
    ((CUBE, [8, 8, 8]), "upsample_nearest3d _upsample_nearest_exact3d"),
    ((LINE, [8], False), "upsample_linear1d"),
    ((PLANE, [8, 8], False), "upsample_bilinear2d _upsample_bilinear2d_aa"),
    ((PLANE, [8, 8], False), "upsample_bicubic2d _upsample_bicubic2d_aa"),
    ((CUBE, [8, 8, 8], False), "upsample_trilinear3d"),
    ((M,), "prod sum linalg_vector_norm"),
    ((M, 0), "prod.dim_int softmax.int log_softmax.int cumprod cumsum"),
    ((M, [0]), "sum.dim_IntList"),
    ((M, 1), "linalg_matrix_norm"),
    ((M, "fro"), "linalg_matrix_norm.str_ord"),
    ((M, 2), "norm.Scalar"),
    ((M, 2, [0]), "norm.ScalarOpt_dim"),
    ((V, V.flip(0), V), "addcdiv addcmul"),
    ((V, V.flip(0)), "atan2 dot vdot"),
    ((t(3, 2), t(3, 2), t(1, 2, 2), t(1)), "bilinear"),
    ((t(3), t(3).flip(0)), "cross"),
    ((PLANE, t(1, 2, 2, 2), 0, 0, False), "grid_sampler"),
    ((V, [whole(1)], t(1)), "index_put"),
    ((M, M, [1], [0]), "tensordot"),
    ((V, 0, whole(4), V), "scatter_add"),
]
INPUTS = {name: arguments for arguments, names in TABLE for name in names.split()}
if differences.MATRIX_SQRTH:
    INPUTS["linalg_matrix_sqrth"] = (M @ M.T,)
# No build for the CPU has the kernel that it ends at; what it receives is tested nevertheless.
NO_KERNEL = {"_scaled_dot_product_flash_attention"}


# The CPU has no fused cells, so what judges ours is composed of its operators.


def lstm(input, hidden, cx, input_bias, hidden_bias):
    sums = (input + input_bias + hidden + hidden_bias).chunk(4, 1)
    (i, f, o), g = (sums[n].sigmoid() for n in (0, 1, 3)), sums[2].tanh()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def gru(input, hidden, hx, input_bias, hidden_bias):
    a, b = (input + input_bias).chunk(3, 1), (hidden + hidden_bias).chunk(3, 1)
    reset, update = ((a[n] + b[n]).sigmoid() for n in (0, 1))
    fresh = (a[2] + reset * b[2]).tanh()
    return fresh + update * (hx - fresh), torch.cat([reset, update, fresh, hx, b[2]], 1)


COMPOSED = {"_thnn_fused_lstm_cell": lstm, "_thnn_fused_gru_cell": gru}


def mapped(change, value):
    if isinstance(value, (list, tuple)):
        return [mapped(change, item) for item in value]
    return change(value) if isinstance(value, torch.Tensor) else value


def as_type(*dtypes):
    """Casts the floating tensors it is given, to these types in turn."""
    seen = iter(range(99))
    return lambda x: x.to(dtypes[next(seen) % len(dtypes)]) if x.is_floating_point() else x


def in_a_list(result):
    return [result] if isinstance(result, torch.Tensor) else result


def test_every_rule_has_a_row_and_every_row_a_rule():
    listed = {name for names in RULES.values() for name in names}
    assert listed == set(INPUTS) | NO_KERNEL, "PyTorch's lists have changed; so must this table."


@pytest.mark.parametrize("policy, name", [row for row in ROWS if row.id not in NO_KERNEL])
def test_the_device_computes_in_the_type_of_the_policy(policy, name):
    given, computed = (LOW,), WIDE
    if policy == "lower_precision_fp":
        given, computed = (WIDE,), LOW
    if policy == "promote":
        given = (LOW, WIDE)
    inputs = mapped(as_type(*given), INPUTS[name])
    with torch.autocast("openreg", dtype=LOW):
        results = overload(name)(*mapped(lambda x: x.to("openreg"), inputs))
    judge = COMPOSED.get(name, overload(name))
    judged = judge(*mapped(as_type(computed), inputs))
    for result, right in zip(in_a_list(results), in_a_list(judged), strict=True):
        assert result.dtype == computed
        torch.testing.assert_close(result.cpu(), right, rtol=2e-2, atol=1e-3)
