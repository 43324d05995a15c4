# SPDX-License-Identifier: BSD-3-Clause
"""What processes share has no name, belongs to one user, and ends with them."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

RANK = """
import sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("orccl", store=dist.FileStore(sys.argv[2], 2), rank=rank, world_size=2)
x = torch.ones(1 << 20, device=f"openreg:{rank}")
pinned = torch.ones(1 << 20).pin_memory()
dist.all_reduce(x)
torch.openreg.synchronize()
print("ready", flush=True)
while True:
    dist.all_reduce(x)
    torch.openreg.synchronize()
"""


@pytest.fixture
def ranks(tmp_path):
    """Two processes of a group that exchange numbers, with a folder of their own for files."""
    (tmp_path / "files").mkdir()
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(tmp_path / "files")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(tmp_path / "store")],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for rank in started:
        assert rank.stdout.readline() == "ready\n"
    yield started
    for rank in started:
        rank.kill()
        rank.wait()


def opened_by(process):
    """What each open file of a process is, such as `socket:[12]` or a path."""
    found = {}
    for number in Path(f"/proc/{process}/fd").iterdir():
        try:
            found[number] = os.readlink(number)
        except FileNotFoundError:
            continue
    return found


def shared_by(process):
    """The names of what a process has mapped to share it, and can write."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    fields = [line.split(maxsplit=5) for line in lines]
    return {each[5] if len(each) > 5 else "" for each in fields if each[1][1::2] == "ws"}


def named_sockets():
    """The numbers of the sockets of this machine that have a name, and so can be found by others."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return {line.split()[6] for line in lines if len(line.split()) > 7}


def test_what_ranks_share_has_no_name_and_one_owner(ranks, tmp_path):
    for rank in ranks:
        assert shared_by(rank.pid) == {"/memfd:openreg (deleted)"}
        files = opened_by(rank.pid)
        memory = [number for number, name in files.items() if name.startswith("/memfd:openreg")]
        assert memory
        for number in memory:
            about = number.stat()
            assert stat.S_IMODE(about.st_mode) == 0o600 and about.st_uid == os.geteuid()
        sockets = {name[8:-1] for name in files.values() if name.startswith("socket:[")}
        assert not sockets & named_sockets()
        assert not {name for name in files.values() if name.startswith(("/dev/shm", "/run"))}
    assert list((tmp_path / "files").iterdir()) == []


def test_killed_ranks_leave_nothing(ranks, tmp_path):
    before = {rank.pid for rank in ranks}
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
    assert [rank.wait(20) for rank in ranks] == [-signal.SIGKILL] * 2
    assert not {process for process in before if Path(f"/proc/{process}").exists()}
    assert list((tmp_path / "files").iterdir()) == []
    # The store is the program's own file.
    assert {path.name for path in tmp_path.iterdir()} == {"files", "store"}
