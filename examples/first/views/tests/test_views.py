# SPDX-License-Identifier: BSD-3-Clause
"""A view shares memory, always."""

import copy
import io

import pytest
import torch
import torch_tiny  # noqa: F401


def test_a_copy_into_a_column_leaves_the_other_columns_alone():
    x = torch.arange(6.0).view(3, 2).to("tiny")
    x[:, 0].copy_(torch.tensor([7.0, 8.0, 9.0]))
    assert x.cpu().tolist() == [[7, 1], [8, 3], [9, 5]]


def test_every_kind_of_view_shares_memory():
    x = torch.arange(12.0).to("tiny")
    for view in (x[2:], x.view(3, 4).t(), x.reshape(2, 6), x.unfold(0, 3, 2), x.expand(2, 12)):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    z = torch.zeros(2, dtype=torch.complex64).to("tiny")
    torch.view_as_real(z).copy_(torch.ones(2, 2))
    assert z.cpu().tolist() == [1 + 1j, 1 + 1j]


def test_a_storage_grows_on_its_own_device():
    x = torch.arange(3.0).to("tiny:1")
    x.resize_(1000)
    assert torch.tiny.current_device() == 0
    assert x.device.index == 1 and x[:3].cpu().tolist() == [0, 1, 2]
    assert x.untyped_storage().device == x.device


def test_views_are_still_views_after_deepcopy_and_after_save_and_load():
    x = torch.arange(4.0).to("tiny")
    file = io.BytesIO()
    torch.save([x, x[1:]], file)
    file.seek(0)
    for whole, part in (copy.deepcopy([x, x[1:]]), torch.load(file)):
        part.copy_(torch.zeros(3))
        assert whole.device.type == "tiny" and whole.cpu().tolist() == [0, 0, 0, 0]


def test_a_module_that_moves_keeps_its_parameters_and_what_shares_them():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    module[1].weight = module[0].weight
    before = list(module.parameters())
    module.to("tiny")
    assert module[1].weight is module[0].weight and module[0].weight.device.type == "tiny"
    assert all(one is other for one, other in zip(before, module.parameters(), strict=True))


def test_a_tensor_is_not_copied_onto_a_part_of_itself():
    x = torch.arange(4.0).to("tiny")
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].copy_(x[:-1])
    x[2:].copy_(x[:2])
    assert x.cpu().tolist() == [0, 1, 0, 1]
