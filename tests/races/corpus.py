# SPDX-License-Identifier: BSD-3-Clause
"""Small programs in pairs: each is right with its missing edge, and wrong without.

A program takes `right`. Of the two commands that race if it is False, the lines end in `# first`
and `# second`, in the order in which they are enqueued. Of a graph, the line is that of the capture. The decorator
says which edge is missing:

"wait"    a stream does not wait for another one
"reuse"   memory is freed while another stream uses it, without `record_stream`
"host"    the host touches pinned memory during a copy
"other"   the program should have used other memory
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = torch.device("openreg", 0)
N = 1024
PAIRS = []


def pair(edge):
    def add(program):
        PAIRS.append((program, edge))
        return program

    return add


def stream():
    return torch.openreg.Stream()


def current():
    return torch.openreg.current_stream()


def on(stream):
    return torch.openreg.stream(stream)


def follow(right, later, earlier):
    """The edge that the wrong program lacks."""
    if right:
        later.wait_stream(earlier)


def ones(*sizes):
    return torch.ones(*sizes or (N,), device=DEVICE)


def ready(*sizes):
    """Memory that every stream may use."""
    tensor = ones(*sizes)
    torch.openreg.synchronize()
    return tensor


# Stream order.


@pair("wait")
def a_copy_from_the_host_does_not_block(right):
    side, host = stream(), torch.ones(N)
    x = host.to(DEVICE, non_blocking=not right)  # first
    with on(side):
        return x * 2  # second


@pair("wait")
def reads_an_input_too_early(right):
    side = stream()
    x = torch.zeros(N, device=DEVICE)  # first
    follow(right, side, current())
    with on(side):
        return x + 1  # second


@pair("wait")
def uses_a_result_too_early(right):
    side, x = stream(), ready()
    with on(side):
        y = x * 2  # first
    follow(right, current(), side)
    return y + 1  # second


@pair("wait")
def overwrites_what_is_still_read(right):
    side, x = stream(), ready()
    with on(side):
        y = x * 2  # first
    follow(right, current(), side)
    x.zero_()  # second
    return y


@pair("wait")
def two_streams_write(right):
    side, x = stream(), ready()
    with on(side):
        x.fill_(1)  # first
    follow(right, current(), side)
    x.fill_(2)  # second


@pair("wait")
def waits_before_the_work_is_enqueued(right):
    side, x = stream(), ready()
    if not right:
        current().wait_stream(side)
    with on(side):
        y = x.exp()  # first
    follow(right, current(), side)
    return y.sum()  # second


@pair("wait")
def the_chain_lacks_its_middle(right):
    a, b, c = stream(), stream(), stream()
    x = ready()
    with on(a):
        x.mul_(2)  # first
    follow(right, b, a)
    c.wait_stream(b)
    with on(c):
        return x.sum()  # second


@pair("wait")
def waits_for_the_wrong_stream(right):
    a, b, x = stream(), stream(), ready()
    with on(a):
        y = x + 1  # first
    with on(b):
        z = x + 2
    current().wait_stream(a if right else b)
    return y * 2, z  # second


@pair("wait")
def the_wrong_stream_waits(right):
    a, b, x = stream(), stream(), ready()
    with on(a):
        x.add_(1)  # first
    (b if right else current()).wait_stream(a)
    with on(b):
        return x * 2  # second


@pair("wait")
def does_not_wait_back(right):
    side, x = stream(), ones()
    for _ in range(2):
        side.wait_stream(current())
        with on(side):
            y = x * 2  # first
        follow(right, current(), side)
        x.add_(1)  # second
    return y


@pair("wait")
def the_host_does_not_wait(right):
    a, b, x = stream(), stream(), ready()
    with on(a):
        x.mul_(2)  # first
    if right:
        torch.openreg.synchronize()
    with on(b):
        return x + 1  # second


@pair("wait")
def synchronizes_another_stream(right):
    a, b, x = stream(), stream(), ready()
    with on(a):
        x.mul_(2)  # first
    (a if right else b).synchronize()
    with on(b):
        return x + 1  # second


# Events.


@pair("wait")
def the_event_is_recorded_too_early(right):
    side, x, event = stream(), ready(), torch.openreg.Event()
    if not right:
        event.record(side)
    with on(side):
        y = x * 2  # first
    if right:
        event.record(side)
    event.wait()
    return y + 1  # second


@pair("wait")
def the_event_was_never_recorded(right):
    side, x, event = stream(), ready(), torch.openreg.Event()
    with on(side):
        y = x * 2  # first
    if right:
        event.record(side)
    current().wait_event(event)
    return y + 1  # second


@pair("wait")
def the_event_is_recorded_on_the_current_stream(right):
    side, x, event = stream(), ready(), torch.openreg.Event()
    with on(side):
        y = x * 2  # first
    event.record(side if right else current())
    current().wait_event(event)
    return y + 1  # second


@pair("wait")
def the_event_is_used_for_another_stream_before_the_wait(right):
    a, b, x = stream(), stream(), ready()
    event = torch.openreg.Event()
    with on(a):
        y = x * 2  # first
        event.record()
    if right:
        current().wait_event(event)
    with on(b):
        z = x * 3
        event.record()
    current().wait_event(event)
    return y + 1, z  # second


@pair("wait")
def more_work_after_the_event(right):
    side, x, event = stream(), ready(), torch.openreg.Event()
    with on(side):
        y = x * 2
        if not right:
            event.record()
        y.add_(1)  # first
        if right:
            event.record()
    event.synchronize()
    return y.sum()  # second


# Memory that is handed out again.


@pair("reuse")
def forgets_record_stream(right):
    side, x = stream(), ones()
    side.wait_stream(current())
    with on(side):
        y = x * 2  # first
    if right:
        x.record_stream(side)
    del x
    return torch.zeros(N, device=DEVICE), y  # second


@pair("reuse")
def records_the_wrong_stream(right):
    a, b, x = stream(), stream(), ones()
    a.wait_stream(current())
    with on(a):
        y = x * 2  # first
    x.record_stream(a if right else b)
    del x
    b.synchronize()  # The allocator learns that the memory is free.
    return torch.zeros(N, device=DEVICE), y  # second


@pair("reuse")
def a_result_of_a_side_stream_dies_on_the_main_one(right):
    side, x = stream(), ready()
    with on(side):
        y = x * 2
    current().wait_stream(side)
    z = y + 1  # first
    if right:
        y.record_stream(current())
    del y
    with on(side):
        return x * 3, z  # second


@pair("reuse")
def a_slice_keeps_no_stream(right):
    side, x = stream(), ones(2, N)
    side.wait_stream(current())
    with on(side):
        y = x[1] * 2  # first
    if right:
        x[1].record_stream(side)
    del x
    return torch.zeros(2, N, device=DEVICE), y  # second


@pair("reuse")
def a_temporary_of_an_expression(right):
    side, x = stream(), ready()
    temporary = x + 1
    side.wait_stream(current())
    with on(side):
        y = temporary.sum()  # first
    follow(right, current(), side)
    del temporary
    return x * 2, y  # second


@pair("reuse")
def a_copy_to_the_device_is_dropped(right):
    side, host = stream(), torch.ones(N).pin_memory()
    batch = host.to(DEVICE, non_blocking=True)
    side.wait_stream(current())
    with on(side):
        y = batch.relu()  # first
    if right:
        batch.record_stream(side)
    del batch
    return host.to(DEVICE, non_blocking=True), y  # second


# Pinned memory.


@pair("host")
def fills_a_pinned_buffer_during_the_copy(right):
    host = torch.ones(N).pin_memory()
    x = host.to(DEVICE, non_blocking=True)  # first
    if right:
        torch.openreg.synchronize()
    host.fill_(2)  # second
    return x


@pair("host")
def reads_a_pinned_result_too_early(right):
    x = ready()
    host = x.to("cpu", non_blocking=True)  # first
    if right:
        current().synchronize()
    return host.sum()  # second


@pair("host")
def reads_a_pinned_number_too_early(right):
    x, host = ready(1), torch.zeros(1).pin_memory()
    host.copy_(x, non_blocking=True)  # first
    event = torch.openreg.Event()
    event.record()
    if right:
        event.synchronize()
    return host.item()  # second


@pair("wait")
def two_streams_share_a_pinned_buffer(right):
    a, b, x = stream(), stream(), ready()
    host, y = torch.zeros(N).pin_memory(), ready()
    with on(a):
        host.copy_(x, non_blocking=True)  # first
    follow(right, b, a)
    with on(b):
        y.copy_(host, non_blocking=True)  # second


@pair("host")
def reuses_a_staging_buffer(right):
    side, stage = stream(), torch.zeros(N).pin_memory()
    batches, done = [torch.ones(N), torch.ones(N)], None
    for batch in batches:
        if right and done:
            done.synchronize()
        stage.copy_(batch)  # second
        with on(side):
            x = stage.to(DEVICE, non_blocking=True)  # first
            done = side.record_event()
    return x


# Training.


@pair("wait")
def a_prefetcher_hands_over_too_early(right):
    side, host = stream(), torch.ones(8, 8).pin_memory()
    model = nn.Linear(8, 8).to(DEVICE)
    torch.openreg.synchronize()
    with on(side):
        batch = host.to(DEVICE, non_blocking=True)  # first
    follow(right, current(), side)
    with torch.no_grad():
        return model(batch)  # second


@pair("wait")
def a_prefetcher_overwrites_the_batch_in_use(right):
    side, host = stream(), torch.ones(N).pin_memory()
    batch = ready()
    y = batch * 2  # first
    follow(right, side, current())
    with on(side):
        batch.copy_(host, non_blocking=True)  # second
    return y


@pair("wait")
def an_optimizer_on_a_side_stream_reads_gradients_too_early(right):
    side, x = stream(), ready()
    weight = nn.Parameter(ready())
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    weight.grad = x * 2  # first
    follow(right, side, current())
    with on(side):
        optimizer.step()  # second


@pair("wait")
def the_next_step_reads_weights_during_the_update(right):
    side, x = stream(), ready()
    weight = nn.Parameter(ready())
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    weight.grad = ready()
    with on(side):
        optimizer.step()  # first
    follow(right, current(), side)
    return x * weight.detach()  # second


@pair("wait")
def gradients_are_zeroed_while_they_are_reduced(right):
    side, weight = stream(), nn.Parameter(ready())
    weight.grad = ready()
    with on(side):
        norm = weight.grad.norm()  # first
    follow(right, current(), side)
    weight.grad.zero_()  # second
    return norm


@pair("wait")
def an_average_of_weights_is_taken_during_the_update(right):
    side, weight, average = stream(), ready(), ready()
    weight.sub_(0.1)  # first
    follow(right, side, current())
    with on(side):
        average.lerp_(weight, 0.1)  # second


@pair("wait")
def a_checkpoint_is_copied_during_the_update(right):
    side, weight = stream(), ready()
    host = torch.zeros(N).pin_memory()
    with on(side):
        host.copy_(weight, non_blocking=True)  # first
    follow(right, current(), side)
    weight.sub_(0.1)  # second


@pair("wait")
def gradients_of_a_side_stream_are_used_on_the_main_one(right):
    side, weight = stream(), nn.Parameter(ready())
    with on(side):
        (weight * 2).sum().backward()
        weight.grad.mul_(0.5)  # first
    follow(right, current(), side)
    return weight.grad.norm()  # second


@pair("other")
def two_streams_train_one_batch_norm(right):
    side, x = stream(), ready(4, 8)
    norm = nn.BatchNorm1d(8).to(DEVICE)
    other = copy.deepcopy(norm) if right else norm
    torch.openreg.synchronize()
    y = F.batch_norm(x, norm.running_mean, norm.running_var, training=True)  # first
    with on(side):
        z = F.batch_norm(x, other.running_mean, other.running_var, training=True)  # second
    return y, z


@pair("wait")
def gradients_are_unscaled_too_early(right):
    side, weight = stream(), nn.Parameter(ready())
    scaler = torch.amp.GradScaler("openreg", init_scale=2.0)
    scaler.scale(ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    torch.openreg.synchronize()
    weight.grad = torch.zeros(N, device=DEVICE)  # first
    follow(right, side, current())
    with on(side):
        scaler.unscale_(optimizer)  # second


@pair("wait")
def lists_of_tensors_are_touched_whole(right):
    side, weights = stream(), [ready(), ready()]
    torch._foreach_add_(weights, 1.0)  # first
    follow(right, side, current())
    with on(side):
        return weights[1].sum()  # second


@pair("wait")
def attention_reads_keys_too_early(right):
    side, q = stream(), ready(1, 2, 16, 8)
    k = torch.zeros(1, 2, 16, 8, device=DEVICE)  # first
    follow(right, side, current())
    with on(side):
        return F.scaled_dot_product_attention(q, k, q)  # second


@pair("wait")
def a_convolution_reads_its_weight_too_early(right):
    side, x, weight = stream(), ready(1, 3, 8, 8), ready(4, 3, 3, 3)
    weight.mul_(2)  # first
    follow(right, side, current())
    with on(side):
        return F.conv2d(x, weight)  # second


@pair("wait")
def random_numbers_are_drawn_into_memory_in_use(right):
    side, x = stream(), ready()
    y = x * 2  # first
    follow(right, side, current())
    with on(side):
        x.normal_()  # second
    return y


@pair("wait")
def an_index_is_read_too_early(right):
    side, x = stream(), ready()
    index = torch.zeros(4, dtype=torch.long, device=DEVICE)  # first
    follow(right, side, current())
    with on(side):
        return x.index_select(0, index)  # second


# Parts of one tensor.


@pair("other")
def columns_of_one_matrix(right):
    side, x = stream(), ready(32, 32)
    x[:, :16].mul_(2)  # first
    with on(side):
        x[:, 16 if right else 15 :].mul_(2)  # second


@pair("other")
def rows_of_one_matrix(right):
    side, x = stream(), ready(32, 32)
    x[:16].mul_(2)  # first
    with on(side):
        x[16 if right else 15 :].mul_(2)  # second


@pair("other")
def every_second_element(right):
    side, x = stream(), ready()
    x[::2].mul_(2)  # first
    with on(side):
        x[1 if right else 2 :: 2].mul_(2)  # second


@pair("other")
def an_output_that_is_given(right):
    side, x, out = stream(), ready(), ready()
    y = out + 1  # first
    with on(side):
        torch.add(x, x, out=torch.empty_like(x) if right else out)  # second
    return y


@pair("other")
def two_readers_and_a_writer(right):
    side, x, y = stream(), ready(), ready()
    z = x * y  # first
    with on(side):
        return (x * y if right else x.mul_(y)), z  # second


# Two devices.


@pair("wait")
def a_copy_to_another_device_is_used_too_early(right):
    other = torch.device("openreg", 1)
    side, x = torch.openreg.Stream(device=other), ready()
    y = x.to(other)  # first
    follow(right, side, torch.openreg.current_stream(other))
    with on(side):
        return y + 1  # second


# Graphs.


def captured(body):
    graph = torch.accelerator.Graph()
    with torch.Stream(), graph:
        result = body()
    return graph, result


@pair("wait")
def the_input_of_a_graph_is_filled_too_late(right):
    side, x = stream(), ready()
    graph, _ = captured(lambda: x * 2)  # second
    torch.openreg.synchronize()
    with on(side):
        x.fill_(3)  # first
    follow(right, current(), side)
    graph.replay()


@pair("wait")
def the_output_of_a_graph_is_read_too_early(right):
    side, x = stream(), ready()
    graph, y = captured(lambda: x * 2)  # first
    torch.openreg.synchronize()
    graph.replay()
    follow(right, side, current())
    with on(side):
        return y + 1  # second


@pair("wait")
def branches_of_a_graph_share_memory(right):
    side, x = stream(), ready()

    def body():
        side.wait_stream(current())
        y = x.mul_(2)  # first
        follow(right, side, current())
        with on(side):
            x.add_(1)  # second
        current().wait_stream(side)
        return y

    graph, _ = captured(body)
    torch.openreg.synchronize()
    graph.replay()


# Compiled code. Its line is that of the function that was compiled.


@pair("wait")
def compiled_code_reads_its_input_too_early(right):
    @torch.compile  # second
    def compiled(x):
        return x.sin() * 2 + 1

    compiled(ready())
    side, x = stream(), ready()
    x.mul_(2)  # first
    follow(right, side, current())
    with on(side):
        return compiled(x)


@pair("wait")
def the_result_of_compiled_code_is_used_too_early(right):
    @torch.compile  # first
    def compiled(x):
        return x.sin() * 2 + 1

    side, x = stream(), ready()
    compiled(x)
    with on(side):
        y = compiled(x)
    follow(right, current(), side)
    return y.sum()  # second
