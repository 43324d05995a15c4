# SPDX-License-Identifier: BSD-3-Clause
"""Tensors that two processes share: a server in a spawned process, and what it is asked to do."""

import os
import subprocess
import sys
import time
import weakref

import pytest
import torch
import torch.multiprocessing as mp

HELD = []


def double(tensor):
    tensor.mul_(2)
    torch.openreg.synchronize()


def first_of(tensors):
    """The first element that the second tensor has after the first was filled with 9."""
    whole, part = tensors
    whole.fill_(9)
    return part[0].item(), whole.untyped_storage().data_ptr() == part.untyped_storage().data_ptr()


def make(size):
    HELD.append(torch.arange(size, dtype=torch.float32, device="openreg:1"))
    return HELD[-1]


def serve(requests, replies):
    for function, argument in iter(requests.get, None):
        replies.put(function(argument))
        del argument


class Server:
    def __init__(self):
        context = mp.get_context("spawn")
        self.requests, self.replies = context.SimpleQueue(), context.SimpleQueue()
        self.process = context.Process(target=serve, args=(self.requests, self.replies))
        self.process.start()

    def ask(self, function, argument):
        self.requests.put((function, argument))
        return self.replies.get()


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.requests.put(None)
    server.process.join()


def collected():
    """Whether all memory of this process comes back within some seconds."""
    for _ in range(100):
        torch.openreg.ipc_collect()
        if torch.openreg.memory_allocated() == 0:
            return True
        time.sleep(0.05)
    return False


def test_what_another_process_writes_is_here(server):
    tensor = torch.ones(1000, device="openreg")
    server.ask(double, tensor)
    assert tensor.sum().item() == 2000


def test_share_memory_has_nothing_to_do_and_is_no_lie(server):
    model = torch.nn.Linear(2, 1, bias=False, device="openreg")
    weight, address = model.weight.detach().cpu(), model.weight.data_ptr()
    model.share_memory()
    assert (model.weight.is_shared(), model.weight.data_ptr()) == (True, address)
    server.ask(double, model.weight.detach())
    assert torch.equal(model.weight.detach().cpu(), 2 * weight)


def test_pytorchs_own_way_of_sharing_still_refuses_our_storages():
    with pytest.raises(RuntimeError, match="_share_fd_: only available on CPU"):
        torch.UntypedStorage(8, device="openreg")._share_fd_cpu_()


def test_what_was_sent_is_written_whatever_the_stream():
    program = (
        "import torch\n"
        "from multiprocessing.reduction import ForkingPickler\n"
        "side = torch.Stream('openreg')\n"
        "tensor = torch.zeros(1000, device='openreg')\n"
        "torch.openreg.synchronize()\n"
        "with side:\n"
        "    tensor.fill_(3)\n"
        "assert ForkingPickler.loads(ForkingPickler.dumps(tensor)).sum().item() == 3000\n"
    )
    for seed in range(1, 4):  # Each holds work back, and runs the streams in another order.
        environment = {**os.environ, "OPENREG_SCHEDULE": f"seed:{seed}"}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_what_was_received_or_is_a_slice_may_be_used_in_other_streams(server):
    received = server.ask(make, 4)
    part = torch.UntypedStorage(32, device="openreg:1")[16:32]
    part = torch.empty(0, device="openreg:1").set_(part).fill_(1)
    for gradient in (received, part):
        gradient.record_stream(torch.Stream("openreg:1"))
        with torch.Stream("openreg:1"):
            x = torch.ones(4, device="openreg:1", requires_grad=True)
            y = x * 2
        y.backward(gradient)
        assert x.grad.tolist() == gradient.mul(2).tolist()


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_conjugate_and_negative_bits_are_lost_unless_they_are_resolved(server, device):
    conjugate = torch.tensor([1 + 2j], device=device).conj()
    negative = conjugate.imag
    assert server.ask(torch.Tensor.tolist, conjugate) == [1 + 2j]
    assert server.ask(torch.Tensor.tolist, negative) == [2]
    assert server.ask(torch.Tensor.tolist, conjugate.resolve_conj()) == [1 - 2j]
    assert server.ask(torch.Tensor.tolist, negative.resolve_neg()) == [-2]


def test_a_parameter_arrives_as_one(server):
    weight = torch.nn.Parameter(torch.ones(3, 2, device="openreg"))
    assert server.ask(type, weight) is torch.nn.Parameter


def test_views_of_one_storage_arrive_as_views_of_one_storage(server):
    tensor = torch.zeros(10, device="openreg")
    assert server.ask(first_of, (tensor, tensor[5:])) == (9, True)


def test_a_tensor_of_another_process_is_a_tensor_here(server):
    tensor = server.ask(make, 5)
    assert tensor.device == torch.device("openreg:1")
    assert tensor.add_(1).tolist() == [1, 2, 3, 4, 5]
    assert torch.openreg.memory_allocated(1) == 0, "the memory is not this process's"


def test_memory_comes_back_when_the_other_process_has_dropped_it(server):
    tensor = torch.ones(1000, device="openreg")
    server.ask(double, tensor)
    server.ask(len, [])  # The server drops an argument when it takes the next.
    del tensor
    assert collected()


def test_a_tensor_that_needs_it_brings_memory_back_and_python_runs_at_its_end(server):
    # PyTorch makes a tensor without Python's lock; what ends then takes it.
    torch.openreg.empty_cache()
    most = torch.openreg.mem_get_info()[0] // 3 * 2
    tensor = torch.empty(most, dtype=torch.uint8, device="openreg")
    ends = []
    weakref.finalize(tensor.untyped_storage(), lambda: ends.append(torch.openreg.ipc_collect()))
    server.ask(type, tensor)
    server.ask(len, [])
    del tensor
    assert ends == []
    torch.empty(most, dtype=torch.uint8, device="openreg")
    assert ends == [None]


def test_memory_comes_back_when_the_other_process_is_killed():
    server = Server()
    server.ask(HELD.append, torch.ones(1000, device="openreg"))
    torch.openreg.ipc_collect()
    assert torch.openreg.memory_allocated() > 0
    server.process.kill()
    server.process.join()
    assert collected()
