# SPDX-License-Identifier: BSD-3-Clause
"""Programs whose every fault point is tried: functions of a device, which return a list of numbers."""

import copy
import functools
import io

import torch
import torch.utils.checkpoint
from torch.profiler import ProfilerActivity, profile

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def network(device, *layers):
    """The same weights in each run."""
    torch.manual_seed(0)
    return torch.nn.Sequential(*layers).to(device)


def batch(device, *sizes):
    return torch.linspace(-1, 1, torch.Size(sizes).numel()).reshape(sizes).to(device)


def perceptron(device):
    return network(device, torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))


@program
def arithmetic(device):
    x = batch(device, 64)
    return ((x * 2 + 1).exp() - x.cos()).tolist()


@program
def a_matrix_product(device):
    x = batch(device, 32, 32)
    return (x @ x.t()).sum(0).tolist()


@program
def a_sort(device):
    values, order = batch(device, 100).sin().sort(descending=True)
    return values.tolist() + order.tolist()


@program
def indices(device):
    x = batch(device, 10, 10)
    x[x > 0.5] = 0
    return (
        x[torch.tensor([1, 3, 5], device=device)].flatten().tolist() + x.nonzero().sum(0).tolist()
    )


@program
def an_operator_on_the_cpu(device):
    return torch.linalg.eigvalsh(batch(device, 4, 4) + torch.eye(4, device=device)).tolist()


@program
def random_numbers(device):
    torch.manual_seed(1)
    x = torch.nn.functional.dropout(torch.randn(100, device=device), 0.3)
    return x.tolist()


def train(device, make, forward=lambda model, x: model(x)):
    model = perceptron(device)
    optimizer = make(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(
            forward(model, batch(device, 5, 8)), batch(device, 5, 4)
        ).backward()
        optimizer.step()
    return [p.sum().item() for p in model.parameters()]


@program
def training_with_momentum(device):
    return train(device, functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9))


@program
def training_with_adam(device):
    return train(device, functools.partial(torch.optim.AdamW, lr=0.1, fused=True))


@program
def a_convolutional_step(device):
    model = network(device, torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU())
    model(batch(device, 2, 1, 6, 6)).square().mean().backward()
    return [p.grad.sum().item() for p in model.parameters()]


@program
def attention(device):
    q = batch(device, 1, 2, 5, 8).requires_grad_()
    torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    return q.grad.flatten().tolist()


@program
def mixed_precision(device):
    model, scaler = perceptron(device), torch.amp.GradScaler(torch.device(device).type)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast(torch.device(device).type, torch.float16):
        loss = model(batch(device, 5, 8)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return [p.sum().item() for p in model.parameters()] + [scaler.get_scale()]


@program
def pinned_memory(device):
    host = batch("cpu", 1000).pin_memory()
    there = host.to(device, non_blocking=True)
    back = torch.empty(1000, pin_memory=True)
    back.copy_(there * 2, non_blocking=True)
    torch.accelerator.synchronize(device)
    return back.tolist()


@program
def two_streams(device):
    side = torch.Stream(device)
    x = batch(device, 100)
    side.wait_stream(torch.accelerator.current_stream(device))
    with side:
        y = x * 3
        done = side.record_event()
    done.wait(torch.accelerator.current_stream(device))
    y.record_stream(torch.accelerator.current_stream(device))
    return (y + x).tolist()


@program
def large_tensors(device):
    """Each has an allocation of the driver of its own."""
    kept = [torch.full((6 << 20,), float(i), device=device) for i in range(4)]
    kept[1] = kept[1] + kept[2]
    return [x[-1].item() for x in kept]


@program
def a_checkpoint(device):
    file = io.BytesIO()
    torch.save(perceptron(device).state_dict(), file)
    file.seek(0)
    return [w.sum().item() for w in torch.load(file, map_location=device).values()]


@program
def a_graph(device):
    x = batch(device, 10)
    graph = torch.accelerator.Graph()
    with torch.Stream(device), graph:
        y = x * 2 + 1
    for _ in range(2):
        graph.replay()
        x.copy_(y)
    return x.tolist()


@program
def a_profile(device):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]):
        x = batch(device, 10) + 1
        x = x * 2
    return x.tolist()


@functools.cache
def compiled():
    return torch.compile(lambda x: (x.sin() * 2).sum(1) + 1)


@program
def a_compiled_function(device):
    return compiled()(batch(device, 8, 8)).tolist()


@program
def a_compiled_training_step(device):
    return train(device, functools.partial(torch.optim.SGD, lr=0.1), compiled_network())


@functools.cache
def compiled_network():
    return torch.compile(lambda model, x: model(x))


@program
def a_recurrent_network(device):
    model = network(device, torch.nn.LSTM(4, 8))
    output, _ = model(batch(device, 3, 2, 4))
    output.sum().backward()
    return [p.grad.sum().item() for p in model.parameters()]


@program
def an_embedding(device):
    model = network(device, torch.nn.EmbeddingBag(10, 4, sparse=False))
    model(torch.tensor([[1, 2], [3, 1]], device=device)).square().sum().backward()
    return model[0].weight.grad.flatten().tolist()


@program
def a_sparse_product(device):
    sparse = torch.eye(5).to_sparse().to(device) * 2
    return (sparse @ batch(device, 5, 5)).flatten().tolist()


@program
def a_loader_of_pinned_batches(device):
    rows = torch.utils.data.TensorDataset(batch("cpu", 8, 4))
    loader = torch.utils.data.DataLoader(rows, batch_size=4, pin_memory=True)
    return [row.to(device, non_blocking=True).sum().item() for (row,) in loader]


@program
def a_copy_to_another_device(device):
    return (batch(device, 100).to("openreg:1") + 1).to(device).tolist()


@program
def a_copy_of_a_model(device):
    return [p.sum().item() for p in copy.deepcopy(perceptron(device)).parameters()]


@program
def a_batch_that_is_halved(device):
    """What programs do when memory runs out."""
    size = 8
    while True:
        try:
            return [torch.ones(size, 1 << 20, device=device).mean().item()]
        except torch.OutOfMemoryError:
            if size == 1:
                raise
            size //= 2


@program
def activation_checkpointing(device):
    x = batch(device, 4, 8).requires_grad_()
    torch.manual_seed(2)
    step = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Dropout(0.5))
    torch.utils.checkpoint.checkpoint(step, x, use_reentrant=False).sum().backward()
    return x.grad.flatten().tolist()


@program
def clipped_gradients(device):
    model = perceptron(device)
    model(batch(device, 5, 8)).square().sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    return [norm.item()] + [p.grad.sum().item() for p in model.parameters()]


@program
def timed_events(device):
    before, after = (torch.Event(device, enable_timing=True) for _ in range(2))
    before.record()
    x = batch(device, 10) * 3
    after.record()
    after.synchronize()
    assert before.elapsed_time(after) > 0
    return x.tolist()


# Its graph keeps memory, so that later programs would allocate less: the last one.
@functools.cache
def replayed():
    return torch.compile(lambda x: ((x @ x).cos() + 2) @ x, mode="reduce-overhead")


@program
def a_replayed_function(device):
    for _ in range(3):
        result = replayed()(batch(device, 4, 4)).tolist()
    return result
