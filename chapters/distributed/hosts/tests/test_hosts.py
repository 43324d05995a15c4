# SPDX-License-Identifier: BSD-3-Clause
"""Groups whose ranks are on several hosts, which one machine declares."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
import torch_openreg

# The processes of the section before, and the operations that its tests compare with gloo.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "process_group/tests"))
import ranks as processes
import test_failures as failures
import test_operations as operations
import test_streams as streams
from ranks import device, joined, on
from running import printed

SECOND = failures.SECOND


def serve_on_hosts(rank, size, store, backend, environment, calls):
    """As `serve`; the environment says which host each rank is on, and whether new memory is filled."""
    hosts = environment.pop("hosts").split()
    torch.use_deterministic_algorithms(environment.pop("fills", False), warn_only=True)
    os.environ["OPENREG_HOST_ID"] = hosts[rank]
    processes.serve(rank, size, store, backend, environment, calls)


def ranks_on(hosts, **variables):
    environment = {"hosts": hosts} | variables
    return processes.Ranks(len(hosts.split()), environment=environment, group=serve_on_hosts)


def on_hosts(hosts, **variables):
    """A fixture of the ranks on these hosts, which all tests share."""

    @pytest.fixture(scope="module")
    def group():
        ranks = ranks_on(hosts, **variables)
        yield ranks
        assert set(ranks.end()) == {0}

    return group


two_hosts, pair, one_host = (on_hosts(hosts) for hosts in ("a b a b", "a b", "a a"))
# A result that is read and was never written is not right by chance.
uneven_hosts = on_hosts("a b b", fills=True)


@pytest.fixture(params=["a b"])
def fragile(request):
    """Two ranks on two hosts, or others, that a test may ruin."""
    ranks = ranks_on(request.param)
    yield ranks
    ranks.end()


OPERATIONS = [
    name
    for name, each in vars(operations).items()
    if name.startswith("test_") and hasattr(each, "__wrapped__")
]


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_works_on_one_host_works_on_two(pair, name):
    pair(getattr(operations, name))


@pytest.mark.parametrize("name", [
    "test_gather_scatter_and_their_reductions", "test_sizes_may_differ_between_ranks",
    "test_transfers_match_in_order_whichever_side_begins",
])  # fmt: skip
def test_four_ranks_on_two_hosts(two_hosts, name):
    two_hosts(getattr(operations, name))


@on("two_hosts", "uneven_hosts")
def test_hosts_move_every_size_whatever_their_numbers_of_ranks():
    """Tensors of less than a chunk, of many chunks, and of a part of one more."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for count in [1, 1000, (1 << 18), (1 << 20) + 77]:
        tensor = torch.arange(count, dtype=torch.float32) % 1000 + rank
        expected = (torch.arange(count, dtype=torch.float32) % 1000) * size + sum(range(size))
        result = tensor.to(device())
        dist.all_reduce(result)
        assert torch.equal(result.cpu(), expected)
        average = tensor.to(device())
        dist.all_reduce(average, dist.ReduceOp.AVG)
        torch.testing.assert_close(average.cpu(), expected / size)
        for root in range(size):
            result = tensor.to(device())
            dist.broadcast(result, root)
            assert torch.equal(result.cpu(), tensor - rank + root)
            result = tensor.to(device())
            dist.reduce(result, root)
            assert torch.equal(result.cpu(), expected if rank == root else tensor)
        gathered = torch.empty(size * count, device=device())
        dist.all_gather_into_tensor(gathered, tensor.to(device()))
        parts = [tensor - rank + each for each in range(size)]
        assert torch.equal(gathered.cpu(), torch.cat(parts))
        scattered = torch.empty(count, device=device())
        dist.reduce_scatter_tensor(scattered, gathered)
        assert torch.equal(scattered.cpu(), (tensor - rank + rank) * size)
        received = torch.empty(count, device=device())
        send = dist.P2POp(dist.isend, tensor.to(device()), (rank + 1) % size)
        receive = dist.P2POp(dist.irecv, received, (rank - 1) % size)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()
        assert torch.equal(received.cpu(), tensor - rank + (rank - 1) % size)
    dist.barrier()


@pytest.mark.parametrize("schedule", ["blocking", "seed:1"])
def test_every_schedule_of_the_driver_moves_every_size(monkeypatch, schedule):
    monkeypatch.setenv("OPENREG_SCHEDULE", schedule)
    monkeypatch.setenv("OPENREG_DEVICE_THREADS", "1")
    ranks = ranks_on("a a b")
    ranks(test_hosts_move_every_size_whatever_their_numbers_of_ranks)
    assert ranks.end() == [0] * 3


def test_groups_may_be_used_in_different_orders(two_hosts):
    two_hosts(streams.test_groups_may_be_used_in_different_orders)


def counts_hosts(expected):
    """A group of several hosts maps no memory."""
    dist.all_reduce(torch.ones(1, device=device()))
    torch.openreg.synchronize()
    with open("/proc/self/maps") as maps:
        files = {line.split()[4] for line in maps if "memfd:openreg" in line}
    # One is this rank's own.
    assert len(files) == expected


def test_a_group_of_several_hosts_maps_no_memory_of_other_ranks(two_hosts, pair):
    two_hosts(counts_hosts, 1)
    pair(counts_hosts, 1)


def disagrees_between_hosts():
    message = failures.message_of_disagreement(10 * SECOND, 5)
    tensor = torch.ones(3, device=device())
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2, 2, 2]
    return message


def test_hosts_that_disagree_are_told_of_both_calls(pair):
    for message in pair(disagrees_between_hosts):
        assert (
            "rank 0 calls all_reduce of 8 bytes of float32 with sum, rank 1 calls all_reduce of 12 "
            "bytes of float32 with sum (call number 3 of the group)" in message
        )


def disagrees_on_a_host(call):
    """Rank 2, which is on the host of rank 0, makes another call than the others."""
    group = dist.new_group(timeout=20 * SECOND)
    other = dist.get_rank() == 2
    tensor = torch.ones(2, device=device())
    reduction = dist.ReduceOp.AVG if other else dist.ReduceOp.SUM
    calls = {
        "reduction": lambda: dist.all_reduce(tensor, reduction, group, True),
        "root": lambda: dist.broadcast(tensor, 1 if other else 3, group, True),
        "size": lambda: dist.all_reduce(tensor[: 1 - other], group=group, async_op=True),
    }
    dist.barrier(group)
    begin = time.monotonic()
    # A rank may have done its part, and learns of the failure at its next call.
    message = failures.message_of(lambda: (calls[call]().wait(), dist.barrier(group)))
    assert time.monotonic() - begin < 4
    # The stream that waited raises the error once more, at its next synchronization.
    with contextlib.suppress(RuntimeError):
        torch.openreg.synchronize()
    dist.destroy_process_group(group)
    return message


@pytest.mark.parametrize(("call", "first", "second"), [
    ("reduction", "all_reduce of 8 bytes of float32 with sum",
     "all_reduce of 8 bytes of float32 with average"),
    ("root", "broadcast of 8 bytes of float32 from rank 3",
     "broadcast of 8 bytes of float32 from rank 1"),
    ("size", "all_reduce of 4 bytes of float32 with sum",
     "all_reduce of 0 bytes of float32 with sum"),
])  # fmt: skip
def test_all_ranks_are_told_what_two_ranks_of_a_host_disagree_about(two_hosts, call, first, second):
    for message in two_hosts(disagrees_on_a_host, call):
        assert (
            f"orccl: rank 0 calls {first}, rank 2 calls {second} (call number 2 of the group)"
            in message
        )


def disagrees_about_a_transfer():
    group = dist.new_group(timeout=20 * SECOND)
    rank = dist.get_rank()
    exchange = dist.irecv if rank else dist.isend
    exchange(torch.ones(1, device=device()), 1 - rank, group=group)
    work = exchange(torch.ones(2 + rank, device=device()), 1 - rank, group=group)
    message = failures.failure_of(work)
    dist.barrier()
    dist.destroy_process_group(group)
    return message


def test_both_ranks_of_a_transfer_are_told_that_it_has_two_sizes(pair):
    for message in pair(disagrees_about_a_transfer):
        assert (
            "orccl: rank 0 sends 8 bytes to rank 1, which receives 12 (transfer number 2 from rank "
            "0 to rank 1); the group was aborted" in message
        )


def sums_nothing_on_one_rank():
    group = dist.new_group(timeout=10 * SECOND)
    tensor = torch.ones(4 * dist.get_rank(), device=device())
    work = dist.all_reduce(tensor, group=group, async_op=True)
    message = failures.failure_of(work)
    dist.destroy_process_group(group)
    return message


def test_both_ranks_are_told_that_one_of_them_sums_nothing(pair):
    for message in pair(sums_nothing_on_one_rank):
        assert "of 0 bytes of float32 with sum, rank 1 calls all_reduce of 16 bytes" in message


@pytest.mark.parametrize("call", ["broadcast", "all_gather", "all_to_all"])
def test_calls_that_only_move_data_compare_dtypes_between_hosts(pair, call):
    for message in pair(failures.moves_another_dtype, call):
        assert "of float32" in message and "of int32" in message


def ends_with(call):
    """The last operation of a group, for which rank 1 comes late."""
    group, rank = dist.new_group(), dist.get_rank()
    mine = torch.full((3,), rank + 1.0, device=device())
    received = torch.zeros(3, device=device())
    both = [torch.zeros(3 - 2 * each, device=device()) for each in range(2)]
    objects = [None, None] if rank == 0 else None
    if rank == 1:
        time.sleep(0.5)
    if call == "send":
        dist.send(mine, 1, group) if rank == 0 else dist.recv(received, 0, group)
        expected = received.new_tensor([1.0] * 3) if rank else received
    elif call == "gather":
        outputs = [torch.zeros_like(mine) for _ in range(2)] if rank == 0 else None
        dist.gather(mine, outputs, 0, group)
        received = torch.cat(outputs) if outputs else received
        expected = torch.tensor([1.0] * 3 + [2.0] * 3) if outputs else received
    elif call == "scatter":
        dist.scatter(received, [mine, mine + 1] if rank == 0 else None, 0, group)
        expected = torch.full((3,), rank + 1.0)
    elif call == "uneven all_gather":
        dist.all_gather(both, mine[: 3 - 2 * rank], group)
        received, expected = torch.cat(both), torch.tensor([1.0] * 3 + [2.0])
    else:
        dist.gather_object({"rank": rank}, objects, 0, group)
        assert objects in (None, [{"rank": 0}, {"rank": 1}])
        expected = received
    dist.destroy_process_group(group)
    assert received.tolist() == expected.tolist()


def sends_past_a_rank_that_leaves():
    group, rank = dist.new_group(), dist.get_rank()
    tensor = torch.full((3,), rank + 1.0, device=device())
    if rank == 0:
        dist.send(tensor, 3, group)
    elif rank == 3:
        dist.recv(tensor, 0, group)
        assert tensor.tolist() == [1.0] * 3
    dist.destroy_process_group(group)


def test_a_rank_without_transfers_may_destroy_the_group_at_once(two_hosts):
    for _ in range(3):
        two_hosts(sends_past_a_rank_that_leaves)


@pytest.mark.parametrize("where", ["pair", "one_host"])
@pytest.mark.parametrize("call", ["send", "gather", "scatter", "uneven all_gather", "objects"])
def test_the_last_operation_of_a_group_is_done_when_the_group_is_destroyed(where, call, request):
    for _ in range(2):
        request.getfixturevalue(where)(ends_with, call)


def sends_itself_another_size():
    rank = dist.get_rank()
    send = dist.P2POp(dist.isend, torch.ones(2, device=device()), rank)
    receive = dist.P2POp(dist.irecv, torch.ones(1, device=device()), rank)
    return failures.message_of(lambda: dist.batch_isend_irecv([send, receive]), ValueError)


@pytest.mark.parametrize("where", ["one_host", "pair"])
def test_a_rank_that_sends_itself_another_size_is_named(where, request):
    messages = request.getfixturevalue(where)(sends_itself_another_size)
    for rank, message in enumerate(messages):
        assert f"Rank {rank} sends 8 bytes to itself, and receives 4." in message


def connects_in_vain(what):
    if dist.get_rank() == 1:
        engines = {
            "silent": lambda *_: time.sleep(20),
            "dead": lambda *_: os.kill(os.getpid(), signal.SIGKILL),
        }
        torch_openreg._C.set_engine(engines[what])
    group = dist.new_group(timeout=2 * SECOND)
    if dist.get_rank() == 1:
        return ""
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(2, device=device()), group=group, async_op=True)
    message = failures.failure_of(work)
    dist.destroy_process_group(group)
    return message, time.monotonic() - begin


@pytest.mark.parametrize("what", ["silent", "dead"])
def test_the_timeout_ends_a_call_while_its_hosts_connect(fragile, what):
    fragile(failures.waits_for_the_dead)
    fragile.calls[1].send((connects_in_vain, 60, (what,)))
    [(message, taken)] = fragile(connects_in_vain, what, ranks=[0])
    assert re.search("within (the timeout of )?2000 ms", message), message
    assert taken < 4


def test_torchrun_starts_a_group_again(tmp_path):
    script = str(pathlib.Path(__file__).parent / "starts_again.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--max-restarts=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    for hosts in ("one host", "two hosts"):
        environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        options = {"capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run([*command, script, hosts], env=environment, **options)
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.split()) == ["attempt-0"] * 2 + ["attempt-1"] * 2


@on("two_hosts", "uneven_hosts")
def test_an_average_may_have_a_sum_that_overflows():
    """The average of numbers whose sum has no place in their dtype."""
    size = dist.get_world_size()
    most_of = {torch.float16: 60000, torch.int8: -128, torch.int16: 32767}
    for dtype, most in (most_of | {torch.uint8: 255, torch.uint16: 65535}).items():
        tensor = torch.full((5,), most, dtype=dtype, device=device())
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        assert tensor.tolist() == [most] * 5
        dist.reduce(tensor, size - 1, dist.ReduceOp.AVG)
        assert tensor.tolist() == [most] * 5
        part = torch.zeros(3, dtype=dtype, device=device())
        whole = torch.full((3 * size,), most, dtype=dtype, device=device())
        dist.reduce_scatter_tensor(part, whole, dist.ReduceOp.AVG)
        assert part.tolist() == [most] * 3
        places = {"dtype": dtype, "device": device()}
        parts = [torch.full((number,), most // number, **places) for number in range(1, size + 1)]
        part = torch.zeros_like(parts[dist.get_rank()])
        dist.reduce_scatter(part, parts, dist.ReduceOp.AVG)
        assert part.tolist() == parts[dist.get_rank()].tolist()


def leaves_the_other_host_alone():
    group = joined(SECOND)
    message = ""
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(2, device=device()), group=group, async_op=True)
        work.wait()
        told = failures.message_of(torch.openreg.synchronize, RuntimeError)
        message = failures.message_of(work.wait)
        assert message in told
    dist.barrier()
    begin = time.monotonic()
    dist.destroy_process_group(group)
    assert time.monotonic() - begin < 5
    return message


def test_a_time_limit_ends_a_wait_for_another_host(pair):
    message = pair(leaves_the_other_host_alone)[0]
    assert "all_reduce, number 2 of rank 0 was not done within 1000 ms" in message


@on("pair")
def test_an_abort_ends_a_receive_from_another_host():
    group = dist.new_group(timeout=20 * SECOND)
    dist.all_reduce(torch.ones(2, device=device()), group=group)
    torch.openreg.synchronize()
    if dist.get_rank() == 0:
        work = dist.irecv(torch.ones(2, device=device()), 1, group=group)
        failures.backend(group).abort()
        assert "the group was aborted" in failures.message_of(work.wait)
    torch.openreg.synchronize()
    dist.barrier()
    dist.destroy_process_group(group)


def test_a_killed_peer_on_another_host_ends_the_group(fragile):
    _, process = fragile(failures.waits_for_the_dead)
    os.kill(process, signal.SIGKILL)
    fragile.processes[1].join(10)
    [(message, taken)] = fragile(failures.meets_the_dead, ranks=[0])
    assert message.startswith("orccl: rank 1 has ended, or has left the group: ")
    assert "Connection closed by peer" in message or "Connection reset by peer" in message
    assert taken < 2


def waits_for_the_dead_of_a_host():
    global small
    small = dist.new_group(timeout=20 * SECOND)
    dist.all_reduce(torch.ones(2, device=device()), group=small)
    torch.openreg.synchronize()
    return os.getpid()


def meets_the_dead_of_a_host():
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(2, device=device()), group=small, async_op=True)
    message = failures.failure_of(work)
    taken = time.monotonic() - begin
    dist.destroy_process_group(small)
    assert (torch.ones(3, device=device()) + 1).tolist() == [2, 2, 2]
    return message, taken


@pytest.mark.parametrize("fragile", ["a b a b"], indirect=True)
@pytest.mark.parametrize("dead", [0, 3])
def test_all_ranks_of_all_hosts_name_a_dead_rank_within_two_seconds(fragile, dead):
    process = fragile(waits_for_the_dead_of_a_host)[dead]
    os.kill(process, signal.SIGKILL)
    fragile.processes[dead].join(10)
    others = [rank for rank in range(4) if rank != dead]
    results = dict(zip(others, fragile(meets_the_dead_of_a_host, ranks=others), strict=True))
    for message, taken in results.values():
        assert message.startswith(f"orccl: rank {dead} has ended")
        assert taken < 2


def groups_of_the_first_rank_with_each_other():
    global pairs
    pairs = {peer: dist.new_group([0, peer]) for peer in range(1, dist.get_world_size())}
    for peer, group in pairs.items():
        if dist.get_rank() in (0, peer):
            dist.all_reduce(torch.ones(2, device=device()), group=group)
    torch.openreg.synchronize()


def broadcasts(root, peer):
    big = torch.ones(64 << 20, device=device())
    torch.openreg.synchronize()
    begin = time.monotonic()
    work = dist.broadcast(big, root, group=pairs[peer], async_op=True)
    return failures.failure_of(work), time.monotonic() - begin


def bytes_moved():
    """What the connections of this process have sent and received, from `struct tcp_info`."""
    total = 0
    for link in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if link.readlink().name.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(link.name))) as connection:
                    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
                    total += sum(struct.unpack_from("QQ", told, 120))
    return total


def dies_in_the_middle_of_a_broadcast(root, peer):
    begin = bytes_moved()
    big = torch.ones(64 << 20, device=device())  # 256 MiB
    dist.broadcast(big, root, group=pairs[peer], async_op=True)
    while bytes_moved() - begin < big.nbytes // 64:
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_rank_that_dies_in_the_middle_of_a_message_is_named_long_before_the_timeout():
    ranks = ranks_on("a b c d e")
    ranks(groups_of_the_first_rank_with_each_other)
    for peer in range(1, 5):
        root = 0 if peer % 2 else peer
        ranks.calls[peer].send((dies_in_the_middle_of_a_broadcast, 60, (root, peer)))
        [(message, taken)] = ranks(broadcasts, root, peer, ranks=[0])
        # Of a group of two, the other rank has the number 1.
        assert message.startswith("orccl: rank 1 has ended, or has left the group")
        assert taken < 5
    ranks.end()


def leave_work_pending(rank, size, store, backend, environment, calls):
    os.environ["OPENREG_HOST_ID"] = str(rank)
    named = "rank 0 has ended, or has left the group"
    failures.leave_work_pending(rank, size, store, backend, {}, calls, failed=named)


def test_a_process_may_end_while_another_host_is_awaited():
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    ranks = processes.Ranks(2, group=leave_work_pending)
    for calls in ranks.calls:
        assert calls.poll(60) and calls.recv() == (True, None)
    begin = time.monotonic()
    assert ranks.end() == [0, 0]
    assert time.monotonic() - begin < 10


CONNECTS_AT_EXIT = """
import os, time
import torch, torch.distributed as dist, torch_openreg
from torch_openreg import _C

connecting = []

def engine(store, rank, size, timeout):
    print("connects\\n", end="", flush=True)  # one write
    connecting.append(rank)
    time.sleep(0.3)  # Main thread: the program ends meanwhile.
    return dist.ProcessGroupGloo(store, rank, size, timeout)

_C.set_engine(engine)
store = dist.HashStore()
groups = []
for rank in range(2):
    os.environ["OPENREG_HOST_ID"] = str(rank)
    groups.append(torch.openreg.ProcessGroupOrccl(store, rank, 2))
    groups[-1].eager_connect_single_device(torch.device("openreg", rank))
while len(connecting) < 2:
    time.sleep(0.01)
"""


def test_a_process_may_end_while_its_groups_connect():
    assert printed(CONNECTS_AT_EXIT, GLOO_SOCKET_IFNAME="lo") == "connects\n" * 2


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr)


@pytest.fixture
def namespaces():
    """Two networks that are joined by one cable."""
    names = [f"openreg-{os.getpid()}-{end}" for end in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        end = ("type", "veth", "peer", "name", "cable", "netns")
        ip("link", "add", "cable", "netns", names[0], *end, names[1])
        for number, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"10.213.7.{number}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except (OSError, FileNotFoundError) as error:
        pytest.skip(f"this machine makes no network namespaces: {error}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def test_two_networks_are_two_hosts_to_the_engine(namespaces, tmp_path):
    script = str(pathlib.Path(__file__).parent / "across_namespaces.py")
    running = []
    for rank, name in enumerate(namespaces):
        environment = os.environ | {"OPENREG_HOST_ID": name, "GLOO_SOCKET_IFNAME": "cable"}
        command = "ip", "netns", "exec", name, sys.executable, script, str(rank), tmp_path / "store"
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        running.append(process)
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert outputs == ["[3.0] [11.0]\n", "[3.0] [10.0]\n"]
