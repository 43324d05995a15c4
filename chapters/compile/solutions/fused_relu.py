# SPDX-License-Identifier: BSD-3-Clause
"""A pass that makes one operator of a linear layer and the ReLU after it."""

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

aten = torch.ops.aten


class FusedRelu(CustomGraphPass):
    """For `torch._inductor.config.post_grad_custom_post_pass`."""

    def __call__(self, graph):
        for relu in graph.find_nodes(op="call_function", target=aten.relu.default):
            (layer,) = relu.all_input_nodes
            if layer.target is not aten.addmm.default or len(layer.users) > 1 or layer.kwargs:
                continue
            if relu.meta["val"].device.type == "openreg":
                relu.target = aten._addmm_activation.default
                relu.args = layer.args
                graph.erase_node(layer)

    def uuid(self):
        return get_hash_for_files((__file__,))
