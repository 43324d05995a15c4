# SPDX-License-Identifier: BSD-3-Clause
"""Places where PyTorch once named CUDA and now treats a PrivateUse1 device alike: they must stay so."""

import io

import torch
from inequality import NAME, outcome, row
from torch import nn


def equal(what, place, quote="", cuda="yes"):
    """A row that is expected to be equal; `quote` is the line by which it is."""
    return row(what, place, quote, cuda=cuda, means="", here="")


def yes(condition):
    return "yes" if condition else "no"


@equal("`fork_rng()` without a device", "torch/random.py")
def fork_rng():
    first = torch.rand(1, device=NAME)
    state = torch.openreg.get_rng_state()
    with torch.random.fork_rng():
        torch.rand(1, device=NAME)
    return yes(first.device.type == NAME and torch.equal(state, torch.openreg.get_rng_state()))


@equal("`manual_seed` seeds the device", "torch/random.py")
def manual_seed():
    torch.manual_seed(0)
    first = torch.rand(2, device=NAME)
    torch.manual_seed(0)
    return yes(torch.equal(first, torch.rand(2, device=NAME)))


@equal("the default device of `checkpoint`", "torch/utils/checkpoint.py", cuda="the accelerator")
def checkpoint():
    from torch.utils.checkpoint import DefaultDeviceType

    return "the accelerator" if DefaultDeviceType.get_device_type() == NAME else "another"


@equal("`foreach` optimizers", "torch/utils/_foreach_utils.py")
def foreach():
    from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices

    return yes(NAME in _get_foreach_kernels_supported_devices())


@equal("`fused` optimizers", "torch/utils/_foreach_utils.py")
def fused():
    from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

    return yes(NAME in _get_fused_kernels_supported_devices())


@equal("`capturable` optimizers", "torch/optim/optimizer.py")
def capturable():
    from torch.optim.optimizer import _get_capturable_supported_devices

    return yes(NAME in _get_capturable_supported_devices())


@equal("`SyncBatchNorm`", "torch/nn/modules/batchnorm.py", cuda="accepted")
def sync_batch_norm():
    layer = nn.SyncBatchNorm(2).to(NAME).eval()
    return outcome(layer, torch.ones(2, 2, device=NAME))


@equal("the device in the text of a `ParameterList`", "torch/nn/modules/container.py")
def parameter_list():
    return yes(NAME in repr(nn.ParameterList([nn.Parameter(torch.ones(2, device=NAME))])))


@equal("the fused LSTM cell", "aten/src/ATen/native/RNN.cpp", cuda="_thnn_fused_lstm_cell")
def lstm_cell():
    from inequality import calls

    cell = nn.LSTMCell(2, 2).to(NAME)
    with torch.no_grad():
        one = calls(lambda: cell(torch.ones(1, 2, device=NAME)), "_thnn_fused_lstm_cell")
    return "_thnn_fused_lstm_cell" if one == "one operator" else one


@equal("`native_dropout`", "aten/src/ATen/native/Dropout.cpp", cuda="native_dropout")
def dropout():
    from inequality import calls

    x = torch.ones(4, device=NAME, requires_grad=True)
    one = calls(lambda: nn.functional.dropout(x, 0.5), "native_dropout")
    return "native_dropout" if one == "one operator" else one


@equal("the fast path of `TransformerEncoderLayer`", "torch/nn/modules/transformer.py")
def transformer():
    from inequality import calls

    layer = nn.TransformerEncoderLayer(4, 2, batch_first=True).to(NAME).eval()
    x = torch.ones(1, 2, 4, device=NAME)
    with torch.no_grad():
        return yes(calls(lambda: layer(x), "_transformer_encoder_layer_fwd") == "one operator")


@equal("`DataLoader(pin_memory=True)`", "torch/utils/data/dataloader.py")
def data_loader():
    loader = torch.utils.data.DataLoader(torch.ones(2, 2), pin_memory=True)
    return yes(next(iter(loader)).is_pinned())


@equal("`torch.load` onto the device", "torch/serialization.py", cuda="accepted")
def load():
    file = io.BytesIO()
    torch.save(torch.ones(2, device=NAME), file)
    file.seek(0)
    return outcome(torch.load, file, map_location=f"{NAME}:0")


@equal("`torchrun --nproc-per-node=NAME` and `auto`", "torch/distributed/run.py", cuda="accepted")
def nproc_per_node():
    from torch.distributed.run import determine_local_world_size

    return outcome(lambda: [determine_local_world_size(word) for word in (NAME, "auto")])


@equal("`ShardedGradScaler`", "torch/distributed/fsdp/sharded_grad_scaler.py")
def sharded_scaler():
    from torch.distributed.fsdp.sharded_grad_scaler import _is_supported_device

    return yes(_is_supported_device(torch.ones(2, device=NAME)))


@equal("the time of `torch.utils.benchmark`", "torch/utils/benchmark/utils/timer.py")
def timer():
    from torch.utils.benchmark.utils.timer import timer

    x = torch.ones(512, 512, device=NAME)
    for _ in range(20):
        x @ x
    timer()
    return yes(torch.accelerator.current_stream().query())


@equal("random state that a test freezes", "torch/testing/_utils.py")
def freeze_rng_state():
    from torch.testing._internal.common_utils import freeze_rng_state

    state = torch.openreg.get_rng_state()
    with freeze_rng_state():
        torch.rand(1, device=NAME)
    return yes(torch.equal(state, torch.openreg.get_rng_state()))


@equal("a custom operator for one device", "torch/_library/custom_ops.py", cuda="accepted")
def custom_operator():
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x

    name = "inequality_custom::twice"
    operator = torch.library.custom_op(name, twice, mutates_args=(), device_types=NAME)
    return outcome(operator, torch.ones(2, device=NAME))


@equal("the name of the dispatch key, in `Library.impl`", "torch/library.py", cuda="accepted")
def dispatch_key():
    library = torch.library.Library("inequality_key", "DEF")
    library.define("f(Tensor x) -> Tensor")
    return outcome(library.impl, "f", lambda x: x, NAME.upper())


@equal(
    "`x.is_openreg` in a compiled function", "torch/_dynamo/variables/tensor.py", cuda="accepted"
)
def compiled_property():
    torch._dynamo.reset()
    function = torch.compile(
        lambda x: x + 1 if x.is_openreg else x, backend="eager", fullgraph=True
    )
    return outcome(function, torch.ones(2, device=NAME))


@equal(
    "`onlyNativeDeviceTypes` of PyTorch's tests", "torch/testing/_internal/common_device_type.py"
)
def native_types():
    from torch.testing._internal.common_device_type import NATIVE_DEVICES

    return yes(NAME in NATIVE_DEVICES)


@equal("the type in a stable C interface", "torch/csrc/inductor/aoti_torch/c/shim.h")
def shim():
    from pathlib import Path

    header = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch/c/shim.h"
    return yes("aoti_torch_device_type_privateuse1" in header.read_text())


@equal("`custom_fwd` of `torch.amp`", "torch/amp/autocast_mode.py", cuda="accepted")
def custom_forward():
    function = torch.amp.custom_fwd(lambda ctx, x: x, device_type=NAME)
    return outcome(function, type("Context", (), {})(), torch.ones(2, device=NAME))


@equal("a layout for parameters from one vector", "torch/nn/utils/convert_parameters.py")
def vector():
    parameters = [nn.Parameter(torch.ones(2, device=NAME))]
    vector = nn.utils.parameters_to_vector(parameters)
    nn.utils.vector_to_parameters(vector * 2, parameters)
    return yes(parameters[0].sum().item() == 4)
