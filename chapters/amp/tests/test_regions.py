# SPDX-License-Identifier: BSD-3-Clause
"""What an autocast region does beyond its rules: the cache, nesting, threads, backward, tracing."""

import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

LOW = torch.bfloat16
DEVICE = "openreg"


def region(dtype=LOW, **options):
    return torch.autocast(DEVICE, dtype=dtype, **options)


class Casts(TorchDispatchMode):
    """Counts the casts below autocast, and refuses products of two types."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.count += operator is torch.ops.aten._to_copy.default
        if operator is torch.ops.aten.mm.default and args[0].dtype != args[1].dtype:
            raise ValueError(f"mm of {args[0].dtype} and {args[1].dtype}")
        return operator(*args, **(kwargs or {}))


@pytest.fixture
def x():
    return torch.ones(4, 4, device=DEVICE, dtype=LOW)


@pytest.fixture
def weight():
    return torch.nn.Parameter(torch.eye(4, device=DEVICE))


# Which inputs are eligible.


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_doubles_and_integers_are_left_alone(dtype):
    square = torch.eye(4, dtype=dtype, device=DEVICE)
    with region():
        assert torch.mm(square, square).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_floating_numbers_of_at_most_32_bits_are_cast(dtype):
    square = torch.eye(4, dtype=dtype, device=DEVICE)
    with region():
        assert torch.mm(square, square).dtype == LOW
        assert torch.exp(square).dtype == torch.float32


def test_tensors_of_another_device_are_left_alone():
    with region():
        assert torch.mm(torch.eye(4), torch.eye(4)).dtype == torch.float32


def test_each_input_is_judged_by_itself():
    doubles = torch.eye(4, dtype=torch.float64, device=DEVICE)
    with region():
        assert torch.addcmul(doubles, torch.ones(4, device=DEVICE), 2.0 * doubles).dtype == (
            torch.float64
        )


# The cache of casts.


def test_a_weight_is_cast_once_in_a_region(x, weight):
    with region(), Casts() as casts:
        for _ in range(10):
            x @ weight
    assert casts.count == 1
    with region(), Casts() as casts:
        x @ weight
    assert casts.count == 1, "the cache ends with the outermost region"


def test_the_cache_can_be_switched_off(x, weight):
    with region(cache_enabled=False), Casts() as casts:
        for _ in range(10):
            x @ weight
    assert casts.count == 10


def test_only_leaves_that_want_a_gradient_are_cached(x, weight):
    for other in (weight.detach(), weight * 1.0, weight.t()):
        with region(), Casts() as casts:
            x @ other
            x @ other
        assert casts.count == 2


def test_a_weight_that_changes_in_a_region_is_used_as_it_was(x, weight):
    with region():
        before = x @ weight
        with torch.no_grad():
            weight.mul_(2)
        assert torch.equal(x @ weight, before)
    with region():
        assert torch.equal(x @ weight, 2 * before)


def test_a_cast_without_gradients_is_not_given_to_those_who_want_one(x, weight):
    with region():
        with torch.no_grad():
            x @ weight
        (x @ weight).float().sum().backward()
    assert weight.grad is not None


# Regions in regions.


def test_an_inner_region_shares_the_cache(x, weight):
    with region(), Casts() as casts:
        x @ weight
        with region():
            x @ weight
        x @ weight
    assert casts.count == 1


def test_the_cache_does_not_know_types(x, weight):
    with region():
        x @ weight
        with region(torch.float16), Casts():
            with pytest.raises(ValueError, match="mm of torch.float16 and torch.bfloat16"):
                x @ weight


def test_an_inner_region_of_another_type_works_without_the_cache(x, weight):
    with region():
        assert (x @ weight).dtype == LOW
        with region(torch.float16, cache_enabled=False):
            assert (x @ weight).dtype == torch.float16
        assert (x @ weight).dtype == LOW


def test_it_can_be_switched_off_inside(x, weight):
    with region():
        with region(enabled=False):
            assert (x.float() @ weight).dtype == torch.float32
        assert (x @ weight).dtype == LOW


def test_switched_off_inside_it_leaves_low_precision_as_it_is(x):
    with region():
        product = x @ x
        with region(enabled=False):
            assert product.exp().dtype == LOW


# Types that do not go together.


def test_a_third_type_cannot_be_promoted(x):
    with region(), pytest.raises(RuntimeError, match="Unexpected floating ScalarType in at::auto"):
        torch.addcmul(x.half(), x, x)


def test_the_default_type_is_float16_and_can_be_changed(x):
    assert torch.get_autocast_dtype(DEVICE) == torch.float16
    with torch.autocast(DEVICE):
        assert (x @ x).dtype == torch.float16
    torch.set_autocast_dtype(DEVICE, LOW)
    try:
        with torch.autocast(DEVICE):
            assert (x @ x).dtype == LOW
    finally:
        torch.set_autocast_dtype(DEVICE, torch.float16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float8_e4m3fn])
def test_other_types_warn_and_switch_autocast_off(weight, dtype):
    with pytest.warns(UserWarning, match="openreg autocast, but the target dtype is not supported"):
        context = region(dtype)
    with context:
        assert not torch.is_autocast_enabled(DEVICE)
        assert (weight @ weight).dtype == torch.float32


# Threads.


def test_a_thread_begins_outside_and_with_the_default_type():
    seen = []

    def work():
        seen.append((torch.is_autocast_enabled(DEVICE), torch.get_autocast_dtype(DEVICE)))

    torch.set_autocast_dtype(DEVICE, LOW)
    try:
        with torch.autocast(DEVICE):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    finally:
        torch.set_autocast_dtype(DEVICE, torch.float16)
    assert seen == [(False, torch.float16)]


# Backward.


class Watch(torch.autograd.Function):
    """The identity; says whether its backward ran in autocast, and on which thread."""

    seen = None

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        Watch.seen = (torch.is_autocast_enabled(DEVICE), threading.get_ident(), gradient.dtype)
        return gradient


@pytest.mark.parametrize("inside", [False, True])
def test_backward_takes_the_state_of_its_caller_to_the_thread_of_the_device(weight, inside):
    with region():
        loss = (Watch.apply(weight) @ weight).float().sum()
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    state, thread, dtype = Watch.seen
    assert state is inside
    assert thread != threading.get_ident()
    assert dtype == torch.float32, "a gradient has the type of what it belongs to"


class Product(torch.autograd.Function):
    """A function of the user whose backward has rules too."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient @ b.t(), a.t() @ gradient


class AmpProduct(torch.autograd.Function):
    forward = staticmethod(torch.amp.custom_fwd(Product.forward, device_type=DEVICE))
    backward = staticmethod(torch.amp.custom_bwd(Product.backward, device_type=DEVICE))


class Exact(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type=DEVICE, cast_inputs=torch.float32)
    def forward(ctx, a, b):
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type=DEVICE)
    def backward(ctx, gradient):
        assert not torch.is_autocast_enabled(DEVICE)
        return gradient, gradient


def test_the_backward_of_a_users_function_runs_outside(weight):
    with region():
        loss = Product.apply(weight, weight).float().sum()
    with Casts(), pytest.raises(ValueError, match="mm of torch.bfloat16 and torch.float32"):
        loss.backward()


def test_custom_bwd_takes_it_into_the_region_of_its_forward(weight):
    with region():
        loss = AmpProduct.apply(weight, weight).float().sum()
    loss.backward()
    assert torch.equal(weight.grad.cpu(), torch.full((4, 4), 2.0))


def test_custom_fwd_with_cast_inputs_runs_forward_and_backward_without_autocast(x, weight):
    with region():
        result = Exact.apply(x, weight)
    assert result.dtype == torch.float32
    result.sum().backward()
    assert torch.equal(weight.grad.cpu(), torch.ones(4, 4))


# Tracing.


def product(x, weight):
    with region():
        low = x @ weight
    return low, low.float() @ weight


def test_dynamo_keeps_the_region_in_its_graph(x, weight):
    called = []

    def backend(module, inputs):
        called.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return module

    low, wide = torch.compile(product, backend=backend, fullgraph=True)(x, weight)
    assert (low.dtype, wide.dtype) == (LOW, torch.float32)
    enter, exit = (
        next(i for i, name in enumerate(called) if name.startswith(f"<function _{which}_autocast"))
        for which in ("enter", "exit")
    )
    assert "matmul" in called[enter + 1]
    assert exit == enter + 2


def test_a_compiled_function_follows_the_region_of_its_caller(weight):
    graphs = []
    backend = lambda module, inputs: graphs.append(module) or module  # noqa: E731
    compiled = torch.compile(lambda x: x @ x, backend=backend, fullgraph=True)
    assert compiled(weight).dtype == torch.float32
    with region():
        assert compiled(weight).dtype == LOW
    with region(torch.float16):
        assert compiled(weight).dtype == torch.float16
    assert compiled(weight).dtype == torch.float32
    assert len(graphs) == 3, "one for each state"


def test_a_compiled_function_trains_through_its_region(x, weight):
    low, wide = torch.compile(product, backend="eager", fullgraph=True)(x, weight)
    (low.float().sum() + wide.sum()).backward()
    compiled, weight.grad = weight.grad, None
    low, wide = product(x, weight)
    (low.float().sum() + wide.sum()).backward()
    assert torch.equal(weight.grad, compiled)
