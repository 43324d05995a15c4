# SPDX-License-Identifier: BSD-3-Clause
"""The backend orccl of torch.distributed: this chapter's share of `torch.openreg`."""

import atexit
import sys

from . import _C

# [distributed.python] Only the class is new; everything else is called through torch.distributed.
__all__ = ["ProcessGroupOrccl"]

ProcessGroupOrccl = _C.ProcessGroupOrccl


# [distributed.python.create] PyTorch describes a new group; its options decide more than those of the caller.
def _create(description, options):
    """Makes one rank's part of a new group, for `torch.distributed`."""
    if not isinstance(options, (ProcessGroupOrccl.Options, type(None))):
        raise TypeError(
            f"pg_options is a {type(options).__name__}; orccl takes a "
            "torch.openreg.ProcessGroupOrccl.Options."
        )
    timeout = description.timeout
    if options and options._timeout != ProcessGroupOrccl.Options()._timeout:
        timeout = options._timeout
    ours = ProcessGroupOrccl.Options(timeout)
    ours.group_name = description.group_id
    ours.global_ranks_in_group = description.global_ranks_in_group
    return ProcessGroupOrccl(
        description.store, description.group_rank, description.group_size, ours
    )


# [distributed.python.register] `import torch` has imported torch.distributed, so registering imports nothing.
def _register():
    distributed = sys.modules["torch.distributed"]
    if "orccl" not in distributed.Backend.backend_list:
        distributed.Backend.register_backend(
            "orccl", _create, extended_api=True, devices=["openreg"]
        )


_register()
# A program may end without destroying its groups, even with work pending.
atexit.register(_C.end_all_groups)

# [-]
