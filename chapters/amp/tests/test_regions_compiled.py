# SPDX-License-Identifier: BSD-3-Clause
"""What `torch.compile` makes of a region."""

import torch
from regions import LOW, region


def product(x, weight):
    with region():
        low = x @ weight
    return low, low.float() @ weight


def test_dynamo_keeps_the_region_in_its_graph(x, weight):
    called = []

    def backend(module, inputs):
        called.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return module

    low, wide = torch.compile(product, backend=backend, fullgraph=True)(x, weight)
    assert (low.dtype, wide.dtype) == (LOW, torch.float32)
    enter, exit = (
        next(i for i, name in enumerate(called) if name.startswith(f"<function _{which}_autocast"))
        for which in ("enter", "exit")
    )
    assert "matmul" in called[enter + 1]
    assert exit == enter + 2


def test_a_compiled_function_follows_the_region_of_its_caller(weight):
    graphs = []
    backend = lambda module, inputs: graphs.append(module) or module  # noqa: E731
    compiled = torch.compile(lambda x: x @ x, backend=backend, fullgraph=True)
    assert compiled(weight).dtype == torch.float32
    with region():
        assert compiled(weight).dtype == LOW
    with region(torch.float16):
        assert compiled(weight).dtype == torch.float16
    assert compiled(weight).dtype == torch.float32
    assert len(graphs) == 3, "one for each state"


def test_a_compiled_function_trains_through_its_region(x, weight):
    low, wide = torch.compile(product, backend="eager", fullgraph=True)(x, weight)
    (low.float().sum() + wide.sum()).backward()
    compiled, weight.grad = weight.grad, None
    low, wide = product(x, weight)
    (low.float().sum() + wide.sum()).backward()
    assert torch.equal(weight.grad, compiled)
