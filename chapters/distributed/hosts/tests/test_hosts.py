# SPDX-License-Identifier: BSD-3-Clause
"""Groups whose ranks are on several hosts, which one machine declares."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist

# The processes of the section before, and the operations that its tests compare with gloo.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "process_group/tests"))
import ranks as processes
import test_failures as failures
import test_operations as operations
import test_streams as streams
from ranks import device

SECOND = failures.SECOND


def serve_on_hosts(rank, size, store, backend, environment, calls):
    """As `serve`; the environment says which host each rank is on."""
    hosts = environment.pop("hosts").split()
    os.environ["OPENREG_HOST_ID"] = hosts[rank]
    processes.serve(rank, size, store, backend, environment, calls)


def ranks_on(hosts):
    return processes.Ranks(len(hosts.split()), environment={"hosts": hosts}, group=serve_on_hosts)


@pytest.fixture(scope="module")
def two_hosts():
    ranks = ranks_on("a b a b")
    yield ranks
    assert ranks.end() == [0] * 4


@pytest.fixture(scope="module")
def uneven_hosts():
    ranks = ranks_on("a b b")
    yield ranks
    assert ranks.end() == [0] * 3


@pytest.fixture(scope="module")
def pair():
    ranks = ranks_on("a b")
    yield ranks
    assert ranks.end() == [0] * 2


@pytest.fixture
def fragile():
    """Two ranks on two hosts that a test may ruin."""
    ranks = ranks_on("a b")
    yield ranks
    ranks.end()


@pytest.mark.parametrize(
    "name",
    [
        "reduces_as_gloo",
        "reduces_more",
        "premultiplies",
        "reduces_to_one",
        "moves_every_type",
        "gathers_and_scatters",
        "handles_uneven_sizes",
        "handles_layouts",
        "handles_nothing",
        "coalesces",
        "transfers",
        "mixes_a_batch",
        "exchanges_objects",
    ],
)
def test_what_works_on_one_host_works_on_two(pair, name):
    pair(getattr(operations, name))


@pytest.mark.parametrize("name", ["gathers_and_scatters", "handles_uneven_sizes", "transfers"])
def test_four_ranks_on_two_hosts(two_hosts, name):
    two_hosts(getattr(operations, name))


def sizes():
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
        assert torch.equal(
            gathered.cpu(), torch.cat([tensor - rank + each for each in range(size)])
        )
        scattered = torch.empty(count, device=device())
        dist.reduce_scatter_tensor(scattered, gathered)
        assert torch.equal(scattered.cpu(), (tensor - rank + rank) * size)
        received = torch.empty(count, device=device())
        work = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, tensor.to(device()), (rank + 1) % size),
                dist.P2POp(dist.irecv, received, (rank - 1) % size),
            ]
        )
        for each in work:
            each.wait()
        assert torch.equal(received.cpu(), tensor - rank + (rank - 1) % size)
    dist.barrier()


def test_two_hosts_move_every_size(two_hosts):
    two_hosts(sizes)


def test_hosts_may_have_different_numbers_of_ranks(uneven_hosts):
    uneven_hosts(sizes)


def test_groups_may_be_used_in_different_orders(two_hosts):
    two_hosts(streams.uses_groups)


def counts_hosts(expected):
    """Memory of a rank on this host is mapped, that of others is not."""
    dist.all_reduce(torch.ones(1, device=device()))
    torch.openreg.synchronize()
    with open("/proc/self/maps") as maps:
        files = {line.split()[4] for line in maps if "memfd:openreg" in line}
    # One is this rank's own.
    assert len(files) == expected


def test_only_ranks_of_one_host_map_each_others_memory(two_hosts, pair):
    two_hosts(counts_hosts, 2)
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
            "bytes of float32 with sum (call number 2 of the group)" in message
        )


def leaves_the_other_host_alone():
    group = dist.new_group(timeout=SECOND)
    dist.all_reduce(torch.ones(2, device=device()), group=group)
    message = ""
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(2, device=device()), group=group, async_op=True)
        work.wait()
        torch.openreg.synchronize()
        while not work.is_completed():
            time.sleep(0.01)
        message = failures.message_of(work.wait)
    dist.barrier()
    begin = time.monotonic()
    dist.destroy_process_group(group)
    assert time.monotonic() - begin < 5
    return message


def test_a_time_limit_ends_a_wait_for_another_host(pair):
    assert (
        "all_reduce, number 2 of rank 0 was not done within 1000 ms"
        in pair(leaves_the_other_host_alone)[0]
    )


def aborts_transfers():
    group = dist.new_group(timeout=20 * SECOND)
    dist.all_reduce(torch.ones(2, device=device()), group=group)
    if dist.get_rank() == 0:
        work = dist.irecv(torch.ones(2, device=device()), 1, group=group)
        failures.backend(group).abort()
        assert "the group was aborted" in failures.message_of(work.wait)
    torch.openreg.synchronize()
    dist.barrier()
    dist.destroy_process_group(group)


def test_an_abort_ends_a_receive_from_another_host(pair):
    pair(aborts_transfers)


def meets_the_dead():
    begin = time.monotonic()
    message = failures.message_of(lambda: dist.barrier())
    torch.openreg.synchronize()
    assert (torch.ones(3, device=device()) + 1).tolist() == [2, 2, 2]
    return message, time.monotonic() - begin


def test_a_killed_peer_on_another_host_ends_the_group(fragile):
    _, process = fragile(failures.waits_for_the_dead)
    os.kill(process, signal.SIGKILL)
    fragile.processes[1].join(10)
    [(message, taken)] = fragile(meets_the_dead, ranks=[0])
    assert "Connection closed by peer" in message or "Connection reset by peer" in message
    assert taken < 5


@pytest.fixture
def fragile_four():
    ranks = ranks_on("a b a b")
    yield ranks
    ranks.end()


def waits_for_the_dead_of_a_host():
    global small
    small = dist.new_group(timeout=5 * SECOND)
    dist.all_reduce(torch.ones(2, device=device()), group=small)
    torch.openreg.synchronize()
    return os.getpid()


def meets_the_dead_of_a_host():
    begin = time.monotonic()
    work = dist.all_reduce(torch.ones(2, device=device()), group=small, async_op=True)
    while not work.is_completed():
        time.sleep(0.01)
    message = failures.message_of(work.wait)
    dist.destroy_process_group(small)
    assert (torch.ones(3, device=device()) + 1).tolist() == [2, 2, 2]
    return message, time.monotonic() - begin


def test_the_other_host_learns_of_a_dead_rank_from_its_leader(fragile_four):
    process = fragile_four(waits_for_the_dead_of_a_host)[3]
    os.kill(process, signal.SIGKILL)
    fragile_four.processes[3].join(10)
    results = fragile_four(meets_the_dead_of_a_host, ranks=[0, 1, 2])
    leader, beside, other = (message for message, _ in results)
    assert "of the ranks 1, 3 on this host, counted from 0, rank 1" in beside
    assert f"(process {process}) has ended without leaving the group" in beside
    assert "Connection" in leader and "by peer" in leader
    assert "was not done within 5000 ms" in other
    assert max(taken for _, taken in results) < 10


def leave_work_pending(rank, size, store, backend, environment, calls):
    os.environ["OPENREG_HOST_ID"] = str(rank)
    failures.leave_work_pending(rank, size, store, backend, {}, calls)


def test_a_process_may_end_while_another_host_is_awaited():
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    ranks = processes.Ranks(2, group=leave_work_pending)
    for calls in ranks.calls:
        assert calls.poll(60) and calls.recv() == (True, None)
    begin = time.monotonic()
    assert ranks.end() == [0, 0]
    assert time.monotonic() - begin < 10


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
        ip(
            "link",
            "add",
            "cable",
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            "cable",
            "netns",
            names[1],
        )
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
    running = [
        subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                name,
                sys.executable,
                script,
                str(rank),
                str(tmp_path / "store"),
            ],
            env=os.environ | {"OPENREG_HOST_ID": name, "GLOO_SOCKET_IFNAME": "cable"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, name in enumerate(namespaces)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert outputs == ["[3.0] [11.0]\n", "[3.0] [10.0]\n"]
