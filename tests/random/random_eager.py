# SPDX-License-Identifier: BSD-3-Clause
"""Programs of random operators, strides, dtypes, outputs and gradients, run line by line on the CPU and on the device."""

import itertools
import random
import re

import torch
from comparing import disagreement, lay_alike, outcome

# ruff: noqa: SIM905
DTYPES = [
    *["float32"] * 5,
    *["float64", "float16", "bfloat16", "int64", "int64", "int32", "int8", "uint8", "bool"],
    "complex64",
]
SIZES = (0, 1, 1, 2, 3, 3, 4, 5, 17)

UNARY = """abs neg exp sin cos tanh sigmoid relu sqrt rsqrt log log1p square floor ceil round trunc sign isnan isfinite
isinf logical_not bitwise_not erf erfc reciprocal frac sgn positive exp2 expm1 asin atan sinh asinh lgamma nan_to_num
conj_physical angle real deg2rad signbit logit erfinv special.i0 special.entr nn.functional.gelu nn.functional.silu
nn.functional.softplus nn.functional.hardswish nn.functional.elu nn.functional.leaky_relu nn.functional.logsigmoid
nn.functional.mish nn.functional.hardtanh sum mean prod any all amax amin argmax argmin max min median nanmedian var std
count_nonzero aminmax logdet det nonzero flatten t tril triu diag unique ravel clone norm fliplr isneginf trace""".split()
BINARY = """add sub mul div pow maximum minimum atan2 fmod remainder eq ne lt le gt ge logical_and logical_or logical_xor
bitwise_and bitwise_or bitwise_xor hypot copysign floor_divide gcd lcm nextafter heaviside xlogy logaddexp fmax fmin mm
matmul bmm mv dot outer kron isclose dist rsub ldexp float_power cross vdot inner true_divide searchsorted bucketize
nn.functional.mse_loss nn.functional.l1_loss nn.functional.linear nn.functional.cosine_similarity
nn.functional.binary_cross_entropy_with_logits nn.functional.huber_loss nn.functional.conv1d nn.functional.conv2d
bitwise_left_shift special.xlog1py allclose equal cdist isin""".split()
TERNARY = """addcmul addcdiv lerp where addmm addmv baddbmm addbmm addr clamp nn.functional.linear
nn.functional.scaled_dot_product_attention nn.functional.batch_norm nn.functional.conv1d""".split()
ALONG = """sum mean prod any all amax amin argmax argmin max min median nanmedian mode var std logsumexp cumsum cumprod
cummax cummin logcumsumexp softmax log_softmax sort argsort nansum count_nonzero flip unbind diff squeeze unsqueeze
nanmean std_mean var_mean unique_consecutive nn.functional.softmin nn.functional.glu nn.functional.normalize""".split()
WITH_NUMBER = [
    "torch.add({x}, {n}, alpha=2)", "torch.clamp({x}, -1, {n})", "torch.clamp({x}, max={n})",
    "{n} - {x}", "{x} ** {n}", "{n} ** {x}", "{x} // {n}", "{x} % {n}", "{x} == {n}",
    "torch.div({x}, {n}, rounding_mode='floor')", "torch.div({x}, {y}, rounding_mode='trunc')",
    "torch.full_like({x}, {n})", "torch.nn.functional.threshold({x}, {n}, 0)",
    "torch.renorm({x}, 2, 0, {n})", "torch.histc({x}, 4, -2, 2)", "torch.bincount({x}.flatten())",
    "torch.topk({x}, 2, {d})", "torch.kthvalue({x}, 2, {d})", "torch.quantile({x}, 0.3, {d})",
    "torch.roll({x}, {i}, {d})", "torch.rot90({x})", "torch.repeat_interleave({x}, 2, {d})",
    "torch.tile({x}, (2, 1))", "torch.cat([{x}, {y}], {d})", "torch.stack([{x}, {x}], {d})",
    "torch.split({x}, 2, {d})", "torch.chunk({x}, 2, {d})", "torch.nn.functional.pad({x}, (1, 0))",
    "torch.nn.functional.layer_norm({x}, {x}.shape[-1:])",
    "torch.nn.functional.layer_norm({x}, {x}.shape[-1:], {y}, {y})",
    "torch.nn.functional.rms_norm({x}, {x}.shape[-1:], {y})",
    "torch.nn.functional.group_norm({x}, 1, {y}, {y})", "torch.nn.functional.avg_pool2d({x}, 2)",
    "torch.nn.functional.max_pool2d({x}, 2)", "torch.nn.functional.adaptive_avg_pool2d({x}, 2)",
    "torch.nn.functional.interpolate({x}, scale_factor=2)", "torch.nn.functional.unfold({x}, 2)",
    "torch.nn.functional.pixel_shuffle({x}, 1)", "torch.nn.functional.one_hot({x})",
    "torch.nn.functional.embedding({x}, {y})", "torch.nn.functional.cross_entropy({x}, {y})",
    "torch.nn.functional.nll_loss({x}, {y})", "torch.vander({x})",
    "torch.meshgrid({x}, {y}, indexing='ij')", "torch.block_diag({x}, {y})",
    "torch.cartesian_prod({x}, {y})", "torch.tensordot({x}, {y}, 1)",
    "torch.einsum('...i,...i->...', {x}, {y})", "torch.einsum('ij,kj->ik', {x}, {y})",
    "torch.trapezoid({x}, dim={d})", "torch.gradient({x}, dim={d})",
    "torch.diagonal_scatter({x}, {y})", "torch.select_scatter({x}, {y}, {d}, 0)",
    "torch.polar({x}, {y})", "torch.complex({x}, {y})", "torch.linalg.norm({x}, {n})",
    "torch.linalg.vector_norm({x}, {n}, {d})", "torch.linalg.inv({x})",
    "torch.linalg.solve({x}, {y})", "torch.fft.fft({x})", "torch.fft.rfft({x}, dim={d})",
    "torch.corrcoef({x})", "torch.cov({x})", "torch.nn.functional.dropout({x}, 0.0)",
    "torch._foreach_add([{x}, {y}], {n})", "torch._foreach_mul([{x}], [{y}])",
]  # fmt: skip
INDEXED = [
    "{x}[{index}]", "{x}[..., {index}]", "{x}[:, {index}]", "{x}[{index}, {index}]", "{x}[{x} > 0]",
    "{x}[{mask}]", "torch.index_select({x}, {d}, {index})", "torch.gather({x}, {d}, {places})",
    "torch.take({x}, {index})", "torch.take_along_dim({x}, {places}, {d})",
    "torch.scatter({x}, {d}, {places}, {y})", "torch.scatter({x}, {d}, {places}, {n})",
    "torch.scatter_add({x}, {d}, {places}, {y})",
    "torch.scatter_reduce({x}, {d}, {places}, {y}, 'amax')",
    "torch.index_add({x}, {d}, {index}, {y})", "torch.index_copy({x}, {d}, {index}, {y})",
    "torch.index_fill({x}, {d}, {index}, {n})",
    "torch.index_reduce({x}, {d}, {index}, {y}, 'mean')", "torch.masked_fill({x}, {mask}, {n})",
    "torch.masked_select({x}, {mask})", "torch.masked_scatter({x}, {mask}, {y})",
    "torch.where({mask}, {x}, {n})", "torch.where({mask}, {x}, {y})",
    "torch.put({x}, {index}, {y})",
]  # fmt: skip
CHANGES = [
    "{x}.add_({y})", "{x}.mul_({n})", "{x}.sub_({y}, alpha=2)", "{x}.div_({y})", "{x}.copy_({y})",
    "{x}.fill_({n})", "{x}.fill_({y}.sum())", "{x}.zero_()", "{x}.clamp_(-1, 1)", "{x}.pow_(2)",
    "{x}.neg_()", "{x}.exp_()", "{x}.abs_()", "{x}.tril_({i})", "{x}.triu_({i})",
    "{x}.cumsum_({d})", "{x}.masked_fill_({mask}, {n})", "{x}.masked_scatter_({mask}, {y})",
    "{x}.index_fill_({d}, {index}, {n})", "{x}.index_add_({d}, {index}, {y})",
    "{x}.index_copy_({d}, {index}, {y})", "{x}.scatter_({d}, {places}, {y})",
    "{x}.scatter_add_({d}, {places}, {y})", "{x}.put_({index}, {y})",
    "{x}.__setitem__({index}, {n})", "{x}.__setitem__({index}, {y})",
    "{x}.__setitem__({mask}, {n})", "{x}.__setitem__((..., 0), {y})", "{x}.lerp_({y}, 0.25)",
    "{x}.addcmul_({y}, {y})", "{x}.addmm_({y}, {y})", "{x}.addmv_({y}, {z})",
    "{x}.baddbmm_({y}, {y})", "{x}.fill_diagonal_({n})", "{x}.logical_not_()", "{x}.eq_({y})",
    "{x}.relu_()", "{x}.resize_({x}.numel()) if fits({x}) else None", "{x}.t_()", "{x}.squeeze_()",
    "{x}.unsqueeze_(0)", "{x}.transpose_(0, -1)", "{x}.swapaxes_(0, 1)", "{x}.set_({y})",
    "{x}.renorm_(2, 0, 1)", "{x}.floor_divide_({n})", "{x}.remainder_({n})",
    "{x}.bitwise_and_({y})", "torch._foreach_add_([{x}, {y}], {n})",
    "torch._foreach_mul_([{x}], {n})",
]  # fmt: skip
VIEWS = [
    "{x}.t()", "{x}.mT", "{x}.transpose(0, -1)", "{x}[1:]", "{x}[:, 1:]", "{x}[..., ::2]", "{x}[0]",
    "{x}[..., -1]", "{x}[None]", "{x}.unsqueeze(-1)", "{x}.squeeze()", "{x}.movedim(0, -1)",
    "{x}.permute(*range(1, {x}.dim()), 0)", "{x}.diagonal()", "{x}.view(-1)", "{x}.reshape(-1)",
    "{x}.unfold(0, 2, 1)", "{x}.narrow({d}, 0, 1)", "{x}.expand(3, *{x}.shape)",
    "{x}.expand(2, *{x}.shape[1:])", "{x}.expand_as({y})", "{x}.view_as({y})", "{x}.swapaxes(0, 1)",
    "{x}.detach()", "{x}.conj()", "{x}.imag", "{x}.real", "torch.view_as_real({x})",
    "{x}.view(torch.uint8)", "{x}.view(torch.int32)", "{x}.as_strided((2, 2), (1, 1))",
]  # fmt: skip
FUNCTIONS = [
    "x * x + y", "(x @ y.mT).relu()", "torch.cat([x, y]).sin()", "x.softmax(-1) * y",
    "x[..., ::2].exp()", "x.expand(3, *x.shape) * 2 + y", "torch.where(x > 0, x * y, y)",
    "x.sum(0) * y", "x.cumsum(-1).mul(y)", "x.sort(-1).values * y", "x.clone().add_(y).tanh_()",
    "x.max(-1).values.sum() * y", "x.median(-1).values.sum() * y",
    "torch.nn.functional.layer_norm(x, x.shape[-1:], y, y)",
    "torch.nn.functional.group_norm(x, 1, y, y)", "x.tril() + y.triu()",
    "x.index_select(-1, torch.arange(x.shape[-1] - 1, -1, -1, device=x.device)) * y",
    "x.prod(-1).sum() * y", "x.amax() * y.amin()", "x.std() * y",
    "torch.nn.functional.mse_loss(x, y)", "torch.lerp(x, y, 0.3)",
    "x.unfold(-1, 2, 1).sum(-1).square()", "torch.einsum('...i,...i->...', x, y)",
    "torch.logsumexp(x + y, 0)", "x.flip(0).roll(1, -1) * y", "torch.addmv(x, y, y[0])",
    "torch.norm(x) * y",
]  # fmt: skip
NUMBERS = "2 0 -1 3 0.5 1.5 True -2.25 1e3 float('inf') float('nan')".split()

KINDS = """tensor unary unary binary binary ternary along along number number indexed indexed change change
view view to gradient gradient database database""".split()


# Making a program. The CPU runs each line meanwhile, so that most lines fit the tensors there are.
class Maker:
    def __init__(self, seed):
        self.choose, self.names, self.count = random.Random(seed), [], 0
        self.space = namespace("cpu")

    def new(self):
        self.count += 1
        return f"t{self.count}"

    def tensor(self):
        pick = self.choose.choice
        shape = tuple(pick(SIZES) for _ in range(pick((0, 1, 1, 2, 2, 2, 3, 3, 4))))
        if self.names and self.choose.random() < 0.5:
            shape = tuple(self.space[pick(self.names)].shape)
        layout = pick(("dense",) * 4 + tuple(LAYOUTS))
        return f"tensor({shape}, {pick(DTYPES)!r}, {layout!r}, {self.choose.randrange(1000)})"

    def fill(self, template):
        """The template with tensors, and indices that fit the first of them."""
        pick = self.choose.choice
        names = {word: pick(self.names) for word in "xyz"}
        if self.choose.random() < 0.5:  # a second tensor that fits
            first = self.space[names["x"]]
            alike = [n for n in self.names if self.space[n].shape == first.shape]
            names["y"] = pick(alike)
        x = self.space[names["x"]]
        dim = self.choose.randrange(-x.dim() - (self.choose.random() < 0.05), x.dim() or 1)
        size = x.shape[dim] if -x.dim() <= dim < x.dim() else 1
        count, shape = pick((0, 1, 2, 3)), tuple(x.shape)
        whole = x.numel() if "take(" in template or "put" in template else size
        numbers = [self.choose.randrange(max(whole, 1)) for _ in range(count)]
        dtype = pick(("int64", "int64", "int64", "int64", "int32"))
        index = f"indices({numbers}, {dtype!r})"
        if self.choose.random() < 0.1 and numbers:
            index = f"indices({numbers[:1]}, {dtype!r}).expand({count})"
        places = f"places({shape}, {size}, {self.choose.randrange(1000)})"
        mask_shape = shape if self.choose.random() < 0.7 else shape[-1:]
        mask = f"tensor({mask_shape}, 'bool', {pick(('dense', *LAYOUTS))!r}, {self.choose.randrange(1000)})"
        return template.format(
            **names, n=pick(NUMBERS), i=self.choose.randrange(-2, 3), d=dim, index=index,
            places=places, mask=mask,
        )  # fmt: skip

    def line(self):
        pick, name = self.choose.choice, self.new()
        kind = pick(KINDS)
        if len(self.names) < 2 or kind == "tensor":
            return f"{name} = {self.tensor()}"
        if kind == "database":
            return f"{name} = database({self.choose.randrange(1 << 30)})"
        if kind == "gradient":
            dtype = pick(("", "", ".double()"))
            x, y = self.fill("{x} {y}").split()
            return f"{name} = gradient(lambda x, y: {pick(FUNCTIONS)}, {x}{dtype}, {y}{dtype})"
        if kind == "to":
            return self.fill(f"{name} = {{x}}.to(torch.{pick(DTYPES)})")
        if kind == "change":
            return self.fill(pick(CHANGES))
        if kind in ("number", "indexed", "view"):
            tables = {"number": WITH_NUMBER, "indexed": INDEXED, "view": VIEWS}
            return self.fill(f"{name} = {pick(tables[kind])}")
        tables = {
            "unary": (UNARY, "{x}"),
            "binary": (BINARY, "{x}, {y}"),
            "ternary": (TERNARY, "{x}, {y}, {z}"),
            "along": (ALONG, pick(("{x}, {d}", "{x}, {d}", "{x}, {d}, keepdim=True"))),
        }
        functions, arguments = tables[kind]
        line = self.fill(f"{name} = torch.{pick(functions)}({arguments})")
        if self.choose.random() < 0.25:
            line = f"{line[:-1]}, out={self.output(line)})"
        return line

    def output(self, line):
        """An old tensor or a new one. The CPU resizes an output before it reads an input in the same memory."""
        inputs = {memory(self.space[name]) for name in re.findall(r"\bt\d+", line)[1:]}
        free = [name for name in self.names if memory(self.space[name]) not in inputs]
        return self.choose.choice(free) if free and self.choose.random() < 0.6 else self.tensor()

    def lines(self):
        for _ in range(self.choose.randint(5, 16)):
            for _ in range(8):
                line = self.line()
                error = outcome(line, self.space)
                if not error or self.choose.random() < 0.04:
                    break
            yield line
            self.names = [n for n, t in self.space.items() if is_small_tensor(n, t)]


def memory(tensor):
    return tensor.untyped_storage()._cdata


def is_small_tensor(name, value):
    named = re.fullmatch(r"t\d+", name)
    return named and isinstance(value, torch.Tensor) and value.numel() < 5000


def make(seed):
    return Maker(seed).lines()


# What the lines call: it makes the same on each device.
LAYOUTS = ("transposed", "gaps", "reversed", "expanded", "channels last", "offset", "one number")


def tensor_on(device):
    def tensor(shape, dtype, layout, seed):
        """Small numbers, so that most results are exact."""
        dtype = getattr(torch, dtype)
        random = torch.Generator().manual_seed(seed)
        numbers = torch.randint(-9, 10, shape, generator=random)
        if dtype == torch.bool:
            numbers = numbers > 0
        elif dtype == torch.uint8:
            numbers = numbers.abs()
        elif dtype.is_complex:
            numbers = torch.complex(numbers / 4, numbers.flip(0) / 4 if shape else numbers / 4)
        elif dtype.is_floating_point:
            numbers = numbers / 4
        return laid_out(numbers.to(dtype).to(device), layout)

    return tensor


def laid_out(x, layout):
    """The numbers of `x` in another order of memory; only "expanded" and "one number" change them."""
    with torch.no_grad():
        if layout == "transposed" and x.dim() > 1:
            return x.mT.contiguous().mT
        if layout == "gaps" and x.dim():
            return torch.stack([x, x], -1)[..., 0]
        if layout == "reversed":
            order = tuple(range(x.dim()))[::-1]
            return x.permute(order).contiguous().permute(order)
        if layout == "expanded" and x.dim() and x.shape[0]:
            return x[:1].expand(x.shape)
        if layout == "channels last" and x.dim() == 4:
            return x.contiguous(memory_format=torch.channels_last)
        if layout == "offset":
            return torch.cat([x.flatten()[:1], x.flatten()])[-x.numel() or 1 :].view(x.shape)
        if layout == "one number" and x.numel():
            return x.flatten()[0].expand(x.shape)
    return x


def fits(x):
    """Whether the storage has all elements of `x` if each is in a place of its own; new ones have any value."""
    size = (x.storage_offset() + x.numel()) * x.element_size()
    return size <= x.untyped_storage().nbytes()


def gradient_on(device):
    def gradient(function, x, y):
        x, y = x.detach().clone().requires_grad_(), y.detach().clone().requires_grad_()
        result = function(x, y)
        (result.square().sum() if result.dim() else result).backward()
        return [result.detach(), *(each.grad for each in (x, y) if each.grad is not None)]

    return gradient


def database_on(device):
    def database(seed):
        """An entry of PyTorch's database of operators, with inputs in random orders of memory."""
        from torch_openreg import conformance_samples as samples

        if "entries" not in kept:
            kept["entries"] = [
                op for name, op in sorted(samples.database().items()) if is_usable(name)
            ]
        choose = random.Random(seed)
        op = choose.choice(kept["entries"])
        dtypes = sorted(op.supported_dtypes("cpu"), key=str)
        dtype = torch.float32 if choose.random() < 0.5 else choose.choice(dtypes)
        if "grid_sample" in op.name:  # The CPU's gradients in 16 bits are off by their own size.
            dtype = torch.float32
        torch.manual_seed(seed)
        backward = samples.has_backward(op, dtype) and choose.random() < 0.5
        some = op.sample_inputs("cpu", dtype, requires_grad=backward)
        inputs = list(itertools.islice(some, 16))
        sample = choose.choice(inputs)
        orders = [choose.choice(ORDERS) for _ in range(20)]
        if is_repaired(op.name):
            orders = ["dense"] * 20
        numbers = iter(orders * 20)
        moved = samples.on(device, sample, lambda x: laid_out(x, next(numbers)).detach())
        print_about(f"{op.full_name} {dtype} {orders[:3]} backward={backward}")
        results, gradients = samples.run(op, moved, backward)
        changed = samples.tensors_in([moved.input, moved.args, moved.kwargs])
        found = samples.tensors_in([results, gradients]) + changed
        return [x.detach().resolve_conj().resolve_neg() for x in found if x.layout == torch.strided]

    return database


kept, about = {}, []
ORDERS = ("dense", *LAYOUTS)
print_about = about.append
# Random numbers, memory that is not initialized, factors that are not unique, and what asks where a tensor is.
UNUSABLE = re.compile(
    r"empty|rand|normal|bernoulli|multinomial|dropout|cauchy|geometric|exponential|uniform|rrelu|svd|eig|qr|lstsq|"
    r"pinv|ldl|lu|fractional|sparse|jiterator|_refs|ops\.aten|tensor_split|pca|ormqr|householder|triangular|cholesky|"
    r"matrix_rank|to_sparse|masked\.|ctc|cdist|cond|stft|istft|resize|allocate|nested|item|bool|hash|polygamma|"
    r"scaled_gemm|scaled_mm|int_mm|rnn|histogram|gumbel|feature_alpha|multi_head|native_batch_norm"
)
# Of these, docs/math/corrected.md says that the CPU computes wrong numbers.
REPAIRED = "median nanmedian tril triu native_group_norm native_layer_norm addmv".split()


def is_usable(name):
    return not UNUSABLE.search(name)


def is_repaired(name):
    return name in REPAIRED or "grid_sample" in name or "embedding_bag" in name


def median_of_cpu(function):
    """The CPU reads wrong elements where a stride is 0."""

    def median(x, *arguments, **options):
        return function(x.contiguous(), *arguments, **options)

    return median


def wrong(x):
    """Right on the CPU only; what the test of this file must find."""
    return x + 1 if x.device.type == "openreg" else x.clone()


class Torch:
    """PyTorch, with functions that are right on the CPU, too."""

    def __init__(self):
        self.median, self.nanmedian = map(median_of_cpu, (torch.median, torch.nanmedian))

    def __getattr__(self, name):
        return getattr(torch, name)


def namespace(device):
    def indices(numbers, dtype):
        return torch.tensor(numbers, dtype=getattr(torch, dtype), device=device)

    def places(shape, size, seed):
        random = torch.Generator().manual_seed(seed)
        return torch.randint(max(size, 1), shape, generator=random).to(device)

    return {
        "torch": Torch() if device == "cpu" else torch,
        "tensor": tensor_on(device),
        "indices": indices,
        "places": places,
        "gradient": gradient_on(device),
        "database": database_on(device),
        "wrong": wrong,
        "fits": fits,
    }


# Judging a program: after each line, all tensors of both places are compared.
def judge(lines):
    here, there = namespace("cpu"), namespace("openreg")
    for number, line in enumerate(lines):
        about.clear()
        raised = outcome(line, here), outcome(line, there)
        found = disagreement(raised, here, there)
        if found:
            return f"line {number + 1}, {', '.join([line, *about[-1:]])}: {found}"
        if "could not run" in str(raised[1]):
            return None  # A kernel may have written some of its elements.
        lay_alike(here, there)
    return None
