# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg.make_graphed_callables`: the eager program, with graphs inside."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DEVICE = "openreg"


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 8)).to(DEVICE)


def batches(count):
    torch.manual_seed(2)
    return [(torch.randn(4, 16).to(DEVICE), torch.randn(4, 8).to(DEVICE)) for _ in range(count)]


def train(net, data):
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for x, y in data:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in net.parameters()]


def test_a_graphed_module_trains_as_the_module_does():
    eager, graphed = model(), model()
    same = torch.openreg.make_graphed_callables(graphed, (torch.randn(4, 16, device=DEVICE),))
    assert same is graphed
    data = batches(6)
    torch.testing.assert_close(train(graphed, data), train(eager, data), rtol=0, atol=0)


def test_the_warm_up_leaves_no_trace_in_the_buffers():
    eager, graphed = (nn.BatchNorm1d(16, device=DEVICE) for _ in range(2))
    torch.openreg.make_graphed_callables(graphed, (torch.randn(4, 16, device=DEVICE),))
    data = [(x, torch.zeros(4, 16, device=DEVICE)) for x, _ in batches(3)]
    assert train(graphed, data)[0] == train(eager, data)[0]
    torch.testing.assert_close(list(graphed.buffers()), list(eager.buffers()), rtol=0, atol=0)


def test_a_checkpointed_callable_recomputes_with_the_masks_of_its_forward():
    def call(x):
        return checkpoint(lambda x: nn.functional.dropout(x) + 0, x, use_reentrant=False)

    x = torch.ones(1000, device=DEVICE, requires_grad=True)
    graphed = torch.openreg.make_graphed_callables(call, (x.detach().clone().requires_grad_(),))
    for seed in 3, 4:
        results = []
        for function in call, graphed:
            torch.manual_seed(seed)
            y = function(x)
            (gradient,) = torch.autograd.grad(y.sum(), x)
            results.append((y.cpu(), torch.openreg.get_rng_state()))
            assert torch.equal(gradient, y)
        assert torch.equal(results[0][0], results[1][0])
        assert torch.equal(results[0][1], results[1][1])


def test_the_inputs_get_their_gradients():
    def call(x, y):
        return (x * y).sin(), x + 1

    x = torch.randn(8, device=DEVICE, requires_grad=True)
    y = torch.randn(8, device=DEVICE)
    samples = x.clone().detach().requires_grad_(), y.clone()
    graphed = torch.openreg.make_graphed_callables(call, samples)
    for given in (x, (x * 2).detach().requires_grad_()):
        other = given.detach().clone().requires_grad_()
        one, two = graphed(given, y)
        (one.sum() + 2 * two.sum()).backward()
        expected_one, expected_two = call(other, y)
        (expected_one.sum() + 2 * expected_two.sum()).backward()
        assert torch.equal(one.cpu(), expected_one.cpu())
        assert torch.equal(two.cpu(), expected_two.cpu())
        assert torch.equal(given.grad.cpu(), other.grad.cpu())


def test_gradients_of_several_steps_are_added():
    eager, graphed = (nn.Linear(16, 8, device=DEVICE) for _ in range(2))
    eager.load_state_dict(graphed.state_dict())
    torch.openreg.make_graphed_callables(graphed, (torch.randn(4, 16, device=DEVICE),))
    for x, y in batches(3):
        for net in eager, graphed:
            nn.functional.mse_loss(net(x), y).backward()
    gradients = [[each.grad for each in net.parameters()] for net in (graphed, eager)]
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_a_backward_pass_whose_forward_is_overwritten_is_refused():
    nets = model(), model()
    sample = torch.randn(4, 16, device=DEVICE)
    torch.openreg.make_graphed_callables(nets, ((sample,), (sample,)))
    one, two = nets

    def loss(net):
        return net(torch.ones(4, 16, device=DEVICE)).sum()

    refused = pytest.raises(RuntimeError, match="a later replay has overwritten that; call backwa")
    with refused:
        (loss(one) + loss(one)).backward()
    with refused:
        kept = loss(two)
        kept.backward(retain_graph=True)
        kept.backward()
    with refused:
        first, second = loss(one), loss(two)
        first.backward()
        second.backward()
    first, second = loss(one), loss(two)
    second.backward()
    first.backward()
    with torch.no_grad():
        loss(one)
    loss(one).backward()


def test_no_later_step_overwrites_a_gradient():
    sample = torch.ones(3, device=DEVICE, requires_grad=True)
    graphed = torch.openreg.make_graphed_callables(lambda x: x * x, (sample,))
    inputs = [torch.full((3,), float(i), device=DEVICE, requires_grad=True) for i in range(3)]
    gradients = [torch.autograd.grad(graphed(x).sum(), x)[0] for x in inputs]
    assert [each[0].item() for each in gradients] == [0, 2, 4]


def test_several_callables_share_a_pool():
    first, second = model(), nn.Linear(8, 8).to(DEVICE)
    eager = copy.deepcopy(nn.Sequential(first, second))
    hidden = torch.randn(4, 8, device=DEVICE, requires_grad=True)
    samples = (torch.randn(4, 16, device=DEVICE),), (hidden,)
    parts = torch.openreg.make_graphed_callables((first, second), samples)
    data = batches(3)
    assert train(nn.Sequential(*parts), data)[0] == train(eager, data)[0]


def test_the_graphs_are_of_the_device_of_the_tensors():
    net = nn.Linear(16, 8, device="openreg:1")
    torch.openreg.make_graphed_callables(net, (torch.ones(4, 16, device="openreg:1"),))
    x = torch.randn(4, 16).to("openreg:1")
    assert torch.equal(net(x), nn.functional.linear(x, net.weight, net.bias))
    with pytest.raises(ValueError, match="got tensors on openreg:0, openreg:1; a graph is of one"):
        torch.openreg.make_graphed_callables(lambda x, y: (x + 1, y + 1), (x[0].to(DEVICE), x[0]))


def test_a_module_in_another_mode_runs_eagerly():
    net = model()
    torch.openreg.make_graphed_callables(net, (torch.randn(4, 16, device=DEVICE),))
    net.eval()
    assert net(torch.randn(2, 16, device=DEVICE)).shape == (2, 8)
    assert not net(torch.ones(2, 16, device=DEVICE)).isnan().any()


def test_a_copy_of_a_graphed_module_runs_eagerly_with_parameters_of_its_own(tmp_path):
    net, x = nn.Linear(16, 8, device=DEVICE), torch.ones(4, 16, device=DEVICE)
    torch.openreg.make_graphed_callables(net, (x.clone(),))
    expected = net(x).tolist()
    torch.save(net, tmp_path / "net.pt")
    copies = copy.deepcopy(net), torch.load(tmp_path / "net.pt", weights_only=False)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.zero_()
    for each in copies:
        assert each(x).tolist() == expected
        assert each(x[:2]).shape == (2, 8)
    assert not net(x).any()


def test_an_input_that_is_not_used_needs_permission():
    def call(x, y):
        return x * 2

    sample = tuple(torch.ones(4, device=DEVICE, requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        torch.openreg.make_graphed_callables(call, sample)
    graphed = torch.openreg.make_graphed_callables(call, sample, allow_unused_input=True)
    x, y = (torch.ones(4, device=DEVICE, requires_grad=True) for _ in range(2))
    graphed(x, y).sum().backward()
    assert x.grad.tolist() == [2.0] * 4 and y.grad is None


def test_outputs_without_gradients_are_captured_too():
    with torch.no_grad():
        graphed = torch.openreg.make_graphed_callables(
            lambda x: {"twice": x * 2}, (torch.ones(4, device=DEVICE),)
        )
    assert graphed(torch.full((4,), 3.0, device=DEVICE))["twice"].tolist() == [6.0] * 4


def test_the_cache_of_autocast_is_refused():
    with torch.autocast(DEVICE):
        with pytest.raises(RuntimeError, match="while autocast caches its casts.*cache_enabled=F"):
            torch.openreg.make_graphed_callables(model(), (torch.ones(4, 16, device=DEVICE),))
    with torch.autocast(DEVICE, cache_enabled=False):
        torch.openreg.make_graphed_callables(model(), (torch.ones(4, 16, device=DEVICE),))


@pytest.mark.parametrize(
    "kind", ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"]
)
def test_a_module_with_hooks_is_refused(kind):
    net = model()
    getattr(net, f"register_{kind}")(lambda *_: None)
    with pytest.raises(RuntimeError, match="a module with hooks, which a graph would not run; reg"):
        torch.openreg.make_graphed_callables(net, (torch.ones(4, 16, device=DEVICE),))


def test_a_buffer_that_wants_a_gradient_is_refused():
    net = model()
    net.register_buffer("scale", torch.ones(4, device=DEVICE, requires_grad=True))
    with pytest.raises(RuntimeError, match="buffer that requires a gradient; only parameters may"):
        torch.openreg.make_graphed_callables(net, (torch.ones(4, 16, device=DEVICE),))


@pytest.mark.parametrize(("call", "more", "error", "sentence"), [
    (torch.add, [2], TypeError, "needs samples of tensors only, because a graph keeps"),
    (torch.mul, [torch.tensor(2.0)], ValueError,
     "got a tensor on cpu, whose values a graph keeps as they"),
    (lambda x: (x * 2, 3), [], TypeError, "returned an? int; a graph returns tensors"),
    (lambda x: (x * 2, None), [], TypeError, "returned a NoneType; a graph returns tensors"),
], ids=["takes a number", "takes a tensor of the host", "returns a number", "returns None"])  # fmt: skip
def test_what_is_no_tensor_of_the_device_is_neither_taken_nor_returned(call, more, error, sentence):
    with pytest.raises(error, match=sentence):
        torch.openreg.make_graphed_callables(call, (torch.ones(4, device=DEVICE), *more))


def test_a_callable_that_is_refused_leaves_nothing_running():
    with torch.openreg.sanitizer.finding_races() as races:
        with pytest.raises(TypeError, match="returned an? int"):
            torch.openreg.make_graphed_callables(
                lambda x: (x * 2, 3), (torch.ones(4, device=DEVICE),)
            )
        torch.ones(4, device=DEVICE)
        assert races() == []


def test_a_leaf_that_is_no_input_may_not_be_returned():
    leaf, x = torch.ones(4, device=DEVICE, requires_grad=True), torch.ones(4, device=DEVICE)
    with pytest.raises(ValueError, match=r"uses a float32 tensor of shape \(4,\) that requires"):
        torch.openreg.make_graphed_callables(lambda x: (x * 2, leaf), (x,))
    x.requires_grad_()
    graphed = torch.openreg.make_graphed_callables(lambda x: (x * 2, x), (x,))
    given = torch.full((4,), 3.0, device=DEVICE, requires_grad=True)
    torch.cat(graphed(given)).sum().backward()
    assert given.grad.tolist() == [3.0] * 4


def test_a_parameter_that_is_no_input_is_refused():
    layer, x = nn.Linear(4, 4, device=DEVICE), torch.ones(2, 4, device=DEVICE)
    for sample in x, x.clone().requires_grad_():
        told = r"uses a float32 tensor of shape \(4(, 4)?\,?\) that req"
        with pytest.raises(ValueError, match=told):
            torch.openreg.make_graphed_callables(lambda x: layer(x), (sample,))
    layer.requires_grad_(False)
    graphed = torch.openreg.make_graphed_callables(lambda x: layer(x), (x.clone(),))
    assert torch.equal(graphed(x), layer(x))


def test_samples_are_counted():
    sample = (torch.ones(4, device=DEVICE),)
    with pytest.raises(ValueError, match="got 2 callables and samples for 1; give one tuple of"):
        torch.openreg.make_graphed_callables((torch.sin, torch.cos), (sample,))


def test_other_arguments_than_those_of_the_sample_are_refused():
    for net in model(), lambda x: x * 2:
        graphed = torch.openreg.make_graphed_callables(net, (torch.ones(4, 16, device=DEVICE),))
        x = torch.ones(4, 16, device=DEVICE)
        for arguments in (), (x, x), ([x],):
            with pytest.raises(TypeError, match="takes the arguments of its sample, which are"):
                graphed(*arguments)
        with pytest.raises(TypeError, match="takes no keyword arguments, because it was captured"):
            graphed(x, scale=2)
        for wrong in x[:1], x.double():
            with pytest.raises(ValueError, match="was captured for a float32 tensor of shape"):
                graphed(wrong)


def test_a_gradient_that_was_not_captured_is_refused():
    net, x = nn.Linear(16, 8, device=DEVICE), torch.ones(4, 16, device=DEVICE)
    net.bias.requires_grad_(False)
    torch.openreg.make_graphed_callables(net, (x.clone(),))
    refused = "captured without the gradient of its float32 tensor of shape "
    # The forward pass alone is allowed, as in a validation loop without no_grad.
    y = net(x.clone().requires_grad_())
    with pytest.raises(RuntimeError, match=refused + r"\(4, 16\), which is asked for now; give a"):
        y.sum().backward()
    assert net.weight.grad is None
    net(x).sum().backward()
    net.bias.requires_grad_(True)
    with pytest.raises(RuntimeError, match=refused + r"\(8,\)"):
        net(x).sum().backward()


def test_a_module_in_another_mode_takes_keyword_arguments():
    class Scaled(nn.Module):
        def forward(self, x, scale=1):
            return x * scale

    net, x = Scaled().to(DEVICE), torch.ones(2, device=DEVICE)
    torch.openreg.make_graphed_callables(net, (x.clone(),))
    assert net.eval()(x, scale=3).tolist() == [3, 3]


def test_an_input_may_have_other_strides_than_the_sample():
    sample = torch.arange(4.0).reshape(2, 2).to(DEVICE)
    graphed = torch.openreg.make_graphed_callables(lambda x: x * 1, (sample,))
    for x in torch.ones(2, 2, device=DEVICE).triu().t(), sample.copy_(sample.cpu()).t():
        expected = x.cpu()
        assert torch.equal(graphed(x).cpu(), expected)


def test_an_input_may_be_another_view_of_the_sample():
    sample = torch.randn(4, dtype=torch.complex64).to(DEVICE)
    graphed = torch.openreg.make_graphed_callables(lambda x: x * 1, (sample,))
    for view in sample.conj(), sample.flip(0).conj():
        expected = view.cpu()
        assert torch.equal(graphed(view).cpu(), expected)


def test_the_samples_may_change_places():
    one, two = torch.ones(3, device=DEVICE), torch.zeros(3, device=DEVICE)
    graphed = torch.openreg.make_graphed_callables(lambda x, y: x * 2 + y, (one, two))
    assert graphed(two, one).tolist() == [1, 1, 1]
    pair = torch.arange(6.0).to(DEVICE)
    graphed = torch.openreg.make_graphed_callables(lambda x: x * 2, (pair[:4],))
    assert graphed(pair[2:]).tolist() == [4, 6, 8, 10]


def test_one_tensor_may_be_the_sample_of_several_inputs():
    x = torch.zeros(3, device=DEVICE, requires_grad=True)
    graphed = torch.openreg.make_graphed_callables(lambda x, y: x * 2 + y, (x, x))
    assert graphed(torch.ones(3, device=DEVICE), x).tolist() == [2, 2, 2]
    square, cube = torch.openreg.make_graphed_callables(
        (lambda x: x**2, lambda x: x**3), ((x,), (x[:2],))
    )
    one = torch.full((3,), 5.0, device=DEVICE, requires_grad=True)
    two = torch.full((2,), 7.0, device=DEVICE, requires_grad=True)
    (square(one).sum() + cube(two).sum()).backward()
    assert one.grad.tolist() == [10, 10, 10]
    assert two.grad.tolist() == [147, 147]
