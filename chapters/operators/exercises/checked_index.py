# SPDX-License-Identifier: BSD-3-Clause
"""Change: an index that comes from the host is checked there, before it is launched."""

import torch

NAME = "aten::index.Tensor"
kernel = torch.library.get_kernel(NAME, "PrivateUse1")
# Registrations last as long as this object.
library = torch.library.Library("aten", "IMPL")


def check(index, dimension, size):
    raise NotImplementedError("Throw the CPU's IndexError if the index is out of bounds.")


def checked_index(keys, self, indices):
    raise NotImplementedError("Check the indices on the host, then call kernel.call_boxed.")


library.impl("index.Tensor", checked_index, "PrivateUse1", with_keyset=True)
