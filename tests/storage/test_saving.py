# SPDX-License-Identifier: BSD-3-Clause
"""Files and copies of what is on the device."""

import copy
import io
import os
import pickle
import re
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import pytest
import torch


def saved_and_loaded(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def a_trained_model(device="openreg"):
    model = torch.nn.Linear(3, 2, device=device)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_a_tensor_comes_back_to_its_device():
    tensor = torch.arange(6.0, device="openreg:1").reshape(2, 3).t()
    for again in (
        saved_and_loaded(tensor, weights_only=True),
        saved_and_loaded(tensor, weights_only=False),
        pickle.loads(pickle.dumps(tensor)),
        copy.deepcopy(tensor),
    ):
        assert again.device == torch.device("openreg:1")
        assert again.stride() == tensor.stride()
        assert torch.equal(again.cpu(), tensor.cpu())


@pytest.mark.parametrize(("device", "to"), [("openreg:1", "cpu"), ("cpu", "openreg:1")])
def test_a_file_can_be_loaded_on_another_device(device, to):
    tensor = torch.arange(3.0, device=device)
    assert saved_and_loaded(tensor, map_location=to).device == torch.device(to)


def test_a_file_can_be_mapped_instead_of_read(tmp_path):
    torch.save(torch.arange(3.0, device="openreg"), tmp_path / "x")
    there = torch.load(tmp_path / "x", mmap=True)
    assert (there.device.type, there.tolist()) == ("openreg", [0, 1, 2])


def test_views_of_one_storage_stay_views_of_one_storage():
    tensor = torch.zeros(4, device="openreg")
    for whole, part in (
        saved_and_loaded((tensor, tensor[2:]), weights_only=True),
        copy.deepcopy((tensor, tensor[2:])),
    ):
        whole.fill_(7)
        assert part.tolist() == [7, 7]


@pytest.mark.parametrize("device", ["cpu", "openreg"])
def test_pickle_gives_each_view_a_storage_of_its_own(device):
    tensor = torch.zeros(4, device=device)
    whole, part = pickle.loads(pickle.dumps((tensor, tensor[2:])))
    whole.fill_(7)
    assert part.tolist() == [0, 0]


def test_a_file_for_a_device_that_is_not_there_is_refused_by_number():
    file = io.BytesIO()
    torch.save(torch.ones(1, device="openreg:1"), file)
    edited = io.BytesIO(file.getvalue().replace(b"openreg:1", b"openreg:9"))
    with pytest.raises(RuntimeError, match="on OPENREG device 9 but torch.openreg.device_count"):
        torch.load(edited, weights_only=False)


def test_a_copied_model_goes_its_own_way():
    model, optimizer = a_trained_model()
    twin_model, twin_optimizer = copy.deepcopy((model, optimizer))
    assert twin_model.weight.device == model.weight.device
    assert type(twin_model.weight) is torch.nn.Parameter
    before = model.weight.tolist()
    twin_model(torch.ones(1, 3, device="openreg")).sum().backward()
    twin_optimizer.step()
    assert twin_model.weight.tolist() != before == model.weight.tolist()


def test_a_model_and_its_optimizer_go_on_where_the_file_was_written():
    model, optimizer = a_trained_model()
    states = saved_and_loaded((model.state_dict(), optimizer.state_dict()), weights_only=True)
    again, again_optimizer = a_trained_model()
    again.load_state_dict(states[0])
    again_optimizer.load_state_dict(states[1])
    for one, its_optimizer in ((model, optimizer), (again, again_optimizer)):
        one.zero_grad()
        one(torch.ones(1, 3, device="openreg")).sum().backward()
        its_optimizer.step()
    assert again.weight.tolist() == model.weight.tolist()


def test_dlpack_hands_over_the_memory_itself():
    tensor = torch.arange(3.0, device="openreg:1")
    again = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(tensor))
    assert again.device == torch.device("openreg:1")
    again.add_(1)
    assert tensor.tolist() == [1, 2, 3]


def elsewhere(program, *arguments):
    """Runs a program that has PyTorch and nothing of ours."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [sys.executable, "-c", "import sys, torch\n" + program, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )


def test_where_the_backend_is_absent_a_file_is_loaded_on_the_cpu(tmp_path):
    model, optimizer = a_trained_model()
    torch.save((model.state_dict(), optimizer.state_dict()), tmp_path / "x")
    done = elsewhere(
        "model, optimizer = torch.load(sys.argv[1], map_location='cpu', weights_only=True)\n"
        "print(model['weight'].tolist(), optimizer['state'][0]['exp_avg'].device)",
        tmp_path / "x",
    )
    assert done.stdout == f"{model.weight.tolist()} cpu\n", done.stderr


def test_where_the_backend_is_absent_a_file_names_it(tmp_path):
    torch.save(torch.ones(1, device="openreg"), tmp_path / "x")
    done = elsewhere("torch.load(sys.argv[1])", tmp_path / "x")
    assert "(tagged with openreg:0)" in done.stderr


def test_a_file_with_a_device_in_it_needs_the_name_first(tmp_path):
    torch.save({"device": torch.device("openreg:1"), "x": torch.ones(1)}, tmp_path / "x")
    load = "print(torch.load(sys.argv[1], map_location='cpu', weights_only=True)['device'])"
    assert (
        "device type at start of device string: openreg" in elsewhere(load, tmp_path / "x").stderr
    )
    rename = "torch.utils.rename_privateuse1_backend('openreg')\n"
    assert elsewhere(rename + load, tmp_path / "x").stdout == "openreg:1\n"


def labelled(*labels):
    tensor = torch.ones(4, device="openreg")
    torch.openreg.set_labels(tensor, labels)
    return tensor


def with_data_of(tensor):
    other = torch.zeros(4, device="openreg")
    other.data = tensor
    return other


def loaded_into_a_module(tensor, assign):
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.zeros(4, device="openreg"))
    module.load_state_dict({"weight": tensor}, assign=assign)
    return module.state_dict()["weight"]


@pytest.mark.parametrize(
    "again",
    [
        lambda x: saved_and_loaded(x, weights_only=True),
        lambda x: pickle.loads(pickle.dumps(x)),
        copy.copy,
        torch.Tensor.detach,
        lambda x: x.data,
        torch.nn.Parameter,
        lambda x: loaded_into_a_module(x, assign=True),
        with_data_of,
        lambda x: x.add_(1),
        lambda x: x.resize_(100),
    ],
)
def test_labels_stay_with_the_tensor_even_if_its_memory_changes(again):
    assert torch.openreg.labels(again(labelled("tiled", "compressed"))) == {"tiled", "compressed"}


@pytest.mark.parametrize(
    "other",
    [
        lambda x: ForkingPickler.loads(ForkingPickler.dumps(x)),
        copy.deepcopy,
        lambda x: x[:2],
        torch.clone,
        lambda x: x + 1,
        lambda x: loaded_into_a_module(x, assign=False),
        lambda x: torch.zeros(4, device="openreg").set_(x),
    ],
)
def test_labels_do_not_follow_the_memory_to_other_tensors(other):
    assert torch.openreg.labels(other(labelled("tiled"))) == set()


def test_one_string_is_no_set_of_labels():
    with pytest.raises(TypeError, match="'tiled' is one string: use {'tiled'}."):
        torch.openreg.set_labels(torch.ones(1, device="openreg"), "tiled")


def test_labels_do_not_leave_the_device():
    tensor = torch.ones(4, device="openreg")
    torch.openreg.set_labels(tensor, {"tiled"})
    assert torch.openreg.labels(saved_and_loaded(tensor, map_location="cpu")) == set()
    with pytest.raises(ValueError, match="on an openreg device has labels; this one is on cpu."):
        torch.openreg.set_labels(torch.ones(1), {"tiled"})


def test_a_label_is_not_one_of_pytorchs_own():
    with pytest.raises(ValueError, match="The label conj is PyTorch's own; choose another."):
        torch.openreg.set_labels(torch.ones(1, device="openreg"), {"conj"})


def test_labels_are_text_that_can_be_read_back():
    tensor = torch.ones(1, device="openreg")
    fine = {"", "a", "\u00df", "\u20ac", "\U0001f600", "nul\0"}
    torch.openreg.set_labels(tensor, fine)
    assert torch.openreg.labels(tensor) == fine
    for wrong in (b"bytes", b"\xff", bytearray, 7, None, "\ud800", "a\udcff"):
        sentence = f"A label must be a str that UTF-8 can encode; {wrong!r} is not."
        with pytest.raises(TypeError, match=re.escape(sentence)):
            torch.openreg.set_labels(tensor, {"fine", wrong})
    assert torch.openreg.labels(tensor) == fine
