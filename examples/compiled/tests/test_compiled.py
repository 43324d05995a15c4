# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of a foreign compiler: found at run time, their assertions, and a layout of their own."""

import copy
import io
import subprocess
import sys

import pytest
import torch

DEVICE = "openreg"
REFUSED_BY = "has no memory: its storage was resized to 0 bytes|an invalid python storage"


def matrix():
    return torch.arange(30.0).reshape(5, 6)


# Kernels in a binary.


def test_a_kernel_of_the_binary_takes_the_elements():
    torch.openreg.reset_fallback_report()
    source, index = matrix(), torch.tensor([[3, -1], [0, 29]])
    out = torch.take(source.to(DEVICE), index.to(DEVICE))
    assert out.tolist() == torch.take(source, index).tolist()
    assert "aten::take" not in torch.openreg.fallback_report()
    assert torch.take(source.double().to(DEVICE), index.to(DEVICE)).tolist() == out.tolist()
    assert torch.openreg.fallback_report()["aten::take"] == 1


def test_the_library_contains_the_binary():
    code = f"""if True:
        import pathlib, torch
        x = torch.zeros(3, device={DEVICE!r})
        assert "openreg-kernels" not in pathlib.Path("/proc/self/maps").read_text()
        torch.take(x, torch.tensor([0]).to({DEVICE!r}))
        assert "openreg-kernels" in pathlib.Path("/proc/self/maps").read_text()"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_kernel_that_is_missing_is_named():
    # openreg::findKernel(char const*): a mangled name has the length of each of its parts.
    symbol = f"_ZN{len('openreg')}openreg10findKernelEPKc"
    code = f"""if True:
        import ctypes, pathlib, torch, torch_openreg
        library = pathlib.Path(torch_openreg.__file__).with_name("libtorch_openreg.so")
        ctypes.CDLL(library).{symbol}(b"nothing")"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "The device's kernels do not contain nothing; add it to" in done.stderr


def test_a_binary_that_the_system_refuses_is_reported():
    code = f"""if True:
        import resource, torch
        x, index = torch.zeros(3).to({DEVICE!r}), torch.tensor([0]).to({DEVICE!r})
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        torch.take(x, index)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "The device's kernels cannot be loaded: there is no room for their" in done.stderr


def test_take_refuses_tensors_of_two_devices():
    with pytest.raises(RuntimeError, match="take needs its tensors on one device; they are on"):
        torch.take(torch.zeros(3, device=DEVICE), torch.tensor([0], device=f"{DEVICE}:1"))


def test_a_graph_of_the_compiler_calls_the_kernels_one_by_one():
    def program(source, index):
        return torch.take(source, index) + 1

    arguments = matrix().to(DEVICE), torch.tensor([3, 0]).to(DEVICE)
    torch.openreg.reset_fallback_report()
    assert torch.compile(program, backend="aot_eager")(*arguments).tolist() == [4, 1]
    assert "aten::take" not in torch.openreg.fallback_report()


# Assertions of kernels.


def waits():
    event = torch.Event(DEVICE)
    event.record()
    return {
        "a copy": lambda out: out.cpu(),
        "the stream": lambda out: torch.accelerator.current_stream().synchronize(),
        "the device": lambda out: torch.accelerator.synchronize(),
        "an event": lambda out: (event.record(), event.synchronize()),
    }


@pytest.mark.parametrize("wait", ["a copy", "the stream", "the device", "an event"])
def test_a_failed_assertion_is_reported_once_by_the_next_wait(wait):
    source = torch.ones(3, device=DEVICE)
    index = torch.tensor([0, 7, 9]).to(DEVICE)
    wait = waits()[wait]
    out = torch.take(source, index)  # returns before the kernel has run
    with pytest.raises(
        RuntimeError, match="A kernel met index 7, which is out of range for 3 elements."
    ):
        wait(out)
    wait(out)
    assert (source + 1).tolist() == [2, 2, 2]


def test_a_wait_that_leaves_refusals_leaves_an_assertion_too():
    out = torch.take(torch.ones(3, device=DEVICE), torch.tensor([6]).to(DEVICE))
    torch.accelerator.empty_cache()
    with pytest.raises(RuntimeError, match="A kernel met index 6"):
        out.cpu()


def test_the_drivers_own_errors_keep_their_text():
    out = torch.take(torch.ones(3, device=DEVICE), torch.tensor([5]).to(DEVICE))
    with pytest.raises(RuntimeError, match="A kernel met index 5"):
        out.cpu()
    with pytest.raises(Exception, match="openreg:9 does not exist"):
        torch.accelerator.set_device_index(9)


# A layout of the device.


def test_packing_and_unpacking_restores_the_matrix():
    for rows, columns in ((5, 6), (4, 4), (1, 9), (0, 3)):
        plain = torch.randn(rows, columns)
        packed = torch.ops.tiled.pack(plain.to(DEVICE))
        assert torch.ops.tiled.is_packed(packed)
        assert packed.shape == plain.shape and packed.stride() == plain.stride()
        unpacked = torch.ops.tiled.unpack(packed)
        assert not torch.ops.tiled.is_packed(unpacked)
        assert unpacked.cpu().equal(plain)


def test_a_kernel_that_knows_the_layout_computes_on_it():
    vector = torch.arange(6.0)
    packed = torch.ops.tiled.pack(matrix().to(DEVICE))
    torch.openreg.reset_fallback_report()
    product = torch.ops.tiled.mv(packed, vector.to(DEVICE))
    assert torch.openreg.fallback_report() == {}
    torch.testing.assert_close(product.cpu(), matrix() @ vector)
    part = torch.ops.tiled.mv(packed[1:3], vector.to(DEVICE))  # unpacked first
    torch.testing.assert_close(part.cpu(), matrix()[1:3] @ vector)
    beyond = torch.ops.tiled.pack(torch.ones(3, 3).to(DEVICE)).as_strided((3, 3), (3, 1), 5)
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.ops.tiled.mv(beyond, torch.ones(3).to(DEVICE))
    torch.testing.assert_close(
        torch.ops.tiled.mv(matrix().to(DEVICE), vector.to(DEVICE)).cpu(), matrix() @ vector
    )


CARRIED = {
    "detach()": lambda x: x.detach(),
    "nn.Parameter": lambda x: torch.nn.Parameter(x, requires_grad=False),
    "x[1:3]": lambda x: x[1:3],
    "x.t()": lambda x: x.t(),
    "x.view(-1)": lambda x: x.view(-1),
    "x.expand(2, 5, 6)": lambda x: x.expand(2, 5, 6),
    "x[:, ::2].t()": lambda x: x[:, ::2].t(),
}
NOT_CARRIED = {
    "empty_like": lambda x: torch.empty_like(x),
    "zeros_like": lambda x: torch.zeros_like(x),
}
REFUSED = {
    "cpu()": lambda x: x.cpu(),
    "clone()": lambda x: x.clone(),
    "x + 1": lambda x: x + 1,
    "x.add_(1)": lambda x: x.add_(1),
    "x.copy_": lambda x: x.copy_(matrix()),
    "contiguous of a view": lambda x: x.t().contiguous(),
    "to another device": lambda x: x.to(f"{DEVICE}:1"),
    "print": lambda x: str(x),
    "torch.save": lambda x: torch.save(x, io.BytesIO()),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", CARRIED)
def test_what_shares_the_storage_carries_the_layout(way):
    view = CARRIED[way](torch.ops.tiled.pack(matrix().to(DEVICE)))
    assert torch.ops.tiled.is_packed(view)
    assert torch.ops.tiled.unpack(view).cpu().equal(CARRIED[way](matrix()))


@pytest.mark.parametrize("way", NOT_CARRIED)
def test_what_allocates_is_plain(way):
    new = NOT_CARRIED[way](torch.ops.tiled.pack(matrix().to(DEVICE)))
    assert not torch.ops.tiled.is_packed(new)
    new.cpu()


@pytest.mark.parametrize("way", REFUSED)
def test_what_reads_the_bytes_is_refused(way):
    packed = torch.ops.tiled.pack(matrix().to(DEVICE))
    with pytest.raises(RuntimeError, match=REFUSED_BY):
        REFUSED[way](packed)
    assert torch.ops.tiled.unpack(packed).cpu().equal(matrix())


def test_what_has_no_tiles_is_refused():
    with pytest.raises(RuntimeError, match="Only float matrices have tiles; this tensor is Double"):
        torch.ops.tiled.pack(torch.zeros(2, 2).double().to(DEVICE))
    packed = torch.ops.tiled.pack(matrix().to(DEVICE))
    with pytest.raises(RuntimeError, match="A product needs a matrix and a float vector that fit"):
        torch.ops.tiled.mv(packed, torch.zeros(5).to(DEVICE))
