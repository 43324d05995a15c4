# SPDX-License-Identifier: BSD-3-Clause
"""The libraries whose own tests run on the device, and why a test fails on the device only."""

from typing import NamedTuple

# What builds the sources, in the place of what pip would choose.
BUILDERS = (
    "setuptools==84.2.1", "setuptools-scm==10.3.4", "vcs-versioning==2.6.0", "wheel==0.48.0",
    "hatchling==1.33.0", "hatch-vcs==0.5.0", "hatch-fancy-pypi-readme==25.1.0", "pathspec==1.1.1",
    "pluggy==1.7.0", "packaging==26.4", "trove-classifiers==2026.9.21.13", "tomlkit==0.15.2",
    "flit-core==4.2.0", "poetry-core==2.5.0", "pdm-backend==2.5.0",
)  # fmt: skip


class Suite(NamedTuple):
    """A library, what pip would install with it except PyTorch, and its tests."""

    version: str
    tests: tuple[str, ...]  # in the source, or with in_wheel in the installed library
    needs: tuple[str, ...] = ()
    # A test makes its tensors on the default device, unless something else tells it the device: a
    # variable or an option, in which DEVICE is replaced, or words of a file or a folder.
    by_default: bool = True
    variables: dict[str, str] = {}  # noqa: RUF012
    edits: tuple[tuple[str, str, str], ...] = ()
    in_wheel: bool = False
    options: tuple[str, ...] = ()  # for pytest
    reasons: dict[str, str] = {}  # noqa: RUF012  # and the pattern of the failures that have it


# A program for CUDA becomes one for this device.
CUDA = r"\b(is_)?cuda\b", r"\1openreg"

# The same on any device that is not the CPU.
ANYWHERE = {
    "asks a tensor of the device for NumPy": r"can't convert \S+ device type tensor to numpy|__array__",
    "shares memory with NumPy or Python": r"can't alias tensor from device 'cpu'",
    "mixes tensors of the CPU and of the device": r"on the same device|all tensors on one openreg device"
    r"|to be on \w+, but|but found at least two devices|Expected a '?\w+'? (device type|generator)"
    r"|device type for generator|is on cpu|on cpu and|device of out parameter"
    r"|The generator is of cpu|attribute 'device' do not match|Input type \(torch.FloatTensor\) and weight type",
    "expects the CPU": r"!= device\(type='cpu'\)|item1 \(<class 'torch.device'>\)|does not equal tensor2 \(cpu\)",
}

SCIPY = "scipy==1.17.1"
LEARN = ("scikit-learn==1.9.1", SCIPY, "joblib==1.6.0", "threadpoolctl==3.8.0", "narwhals==2.29.0")
TYPING = ("jaxtyping==0.3.11", "wadler-lindig==0.1.7")

SUITES = {
    "accelerate": Suite(
        "1.15.0", ("tests/test_accelerator.py", "tests/test_big_modeling.py", "tests/test_data_loader.py",
                   "tests/test_hooks.py", "tests/test_modeling_utils.py",
                   "tests/test_offload.py", "tests/test_optimizer.py", "tests/test_scheduler.py", "tests/test_utils.py"),
        ("parameterized==0.9.0",), by_default=False, variables={"ACCELERATE_TORCH_DEVICE": "DEVICE"},
        edits=(("tests", *CUDA), ("src/accelerate/test_utils/testing.py",
                r'is_cuda_available\(\):\n( +)return "cuda", torch\.cuda\.device_count\(\), torch\.cuda',
                r'True:\n\1return "openreg", torch.openreg.device_count(), torch.openreg')),
        reasons={"the library has a list of devices": r"requires a device in|test_cpu_offload_with_hook"},
    ),
    "array-api-compat": Suite("1.16.0", ("tests",), options=("-k", "torch")),
    "deepinv": Suite(
        "0.5.0", tuple(f"deepinv/tests/test_{name}.py" for name in ("noise_model", "transform")),
        ("h5py==3.16.0", "natsort==8.4.0", "einops==0.8.2", "torchmetrics==1.9.0", "lightning-utilities==0.15.3"),
        by_default=False, variables={"DEEPINV_TEST_DEVICE": "DEVICE"},
        edits=(("deepinv/utils/nn.py", *CUDA), ("deepinv/tests/conftest.py", '"gpu":', '"openreg":')),
        reasons={"has a seed for CUDA's random numbers": "test_transform_identity.*VARIANT"},
    ),
    "e3nn": Suite(
        "0.6.0", ("tests/math", "tests/o3/rotation_test.py"), (SCIPY, "opt_einsum_fx==0.1.4", "opt_einsum==3.4.0"),
        reasons={"expects the CPU's random numbers": r"normalize_activation_test::test_identity"},
    ),
    "einops": Suite(
        "0.8.2", ("einops/tests",), variables={"EINOPS_TEST_BACKENDS": "numpy,torch"},
        edits=(("einops/_backends.py", r"torch\.from_numpy\(x\)", 'torch.from_numpy(x).to("openreg")'),),
    ),
    "entmax": Suite("1.0", ("entmax",)),
    "gpytorch": Suite(
        "1.15.2", ("test/distributions", "test/functions", "test/kernels"),
        (*LEARN, "linear_operator==0.6.1", *TYPING),
    ),
    "linear_operator": Suite("0.6.1", ("test/functions", "test/utils"), (SCIPY, *TYPING)),
    "opt_einsum": Suite("3.4.0", ("opt_einsum/tests/test_backends.py",), edits=(("opt_einsum/backends", *CUDA),)),
    "peft": Suite(
        "0.21.2", tuple(f"tests/test_{name}.py" for name in (
            "bufferdict", "mixed", "vera", "vblora", "shira", "randlora", "pvera", "unilora", "osf", "frod", "deft")),
        ("diffusers==0.42.1", "importlib-metadata==8.7.0", "zipp==3.23.0"),
        edits=(("src/peft/utils/other.py", *CUDA), ("tests", *CUDA)),
        options=("-o", "consider_namespace_packages=true"),
        reasons={
            "safetensors takes no name of this device": r"device openreg is invalid|SafetensorError",
            "compares numbers up to 600 within 0.00001, which depends on the random numbers": r"^tests.test_mixed\S+_3_AdaLora_x2",
        },
    ),
    "pytorch-ignite": Suite(
        "0.5.5", tuple(f"tests/ignite/metrics/test_{name}.py" for name in (
            "cosine_similarity", "loss", "mean_squared_error", "metrics_lambda", "running_average")),
        (*LEARN, "filelock==4.3.1"), by_default=False,
        edits=(("tests/ignite", *CUDA),), options=("-k", "not distrib"),
    ),
    "pytorch_optimizer": Suite(
        "4.1.0", ("tests/optimizers", "tests/test_loss_functions.py"),
        edits=(("tests", *CUDA),), options=("--device", "DEVICE"),
    ),
    "scipy": Suite(
        "1.17.1", ("scipy/cluster", "scipy/constants", "scipy/differentiate", "scipy/fft/tests/test_basic.py",
                   "scipy/fft/tests/test_fftlog.py", "scipy/fft/tests/test_helper.py", "scipy/integrate/tests/test_cubature.py",
                   "scipy/optimize/tests/test_chandrupatla.py", "scipy/signal/tests/test_windows.py",
                   "scipy/special/tests/test_logsumexp.py", "scipy/stats/tests/test_entropy.py"), ("array-api-strict==2.6.1",), by_default=False,
        variables={"SCIPY_ARRAY_API": '["torch"]', "SCIPY_DEVICE": "DEVICE"}, in_wheel=True,
        options=("-m", "array_api_backends"),
    ),
    "skorch": Suite(
        "1.4.0", ("skorch/tests",), (*LEARN, "tabulate==0.10.0", "flaky==3.8.1"), by_default=False,
        edits=(("skorch", *CUDA),), options=("-k", "cuda or device"),
        reasons={"needs a file that the source lacks": "FileNotFoundError", "names a type of CUDA's": "'FloatTensor'"},
    ),
    "tensorly": Suite("0.10.0", ("tensorly/tenalg", "tensorly/metrics"), (SCIPY,), variables={"TENSORLY_BACKEND": "pytorch"}),
    "timm": Suite(
        "1.0.31", ("tests/test_layers.py", "tests/test_layers_drop.py", "tests/test_layers_pool.py",
                   "tests/test_utils.py"),
        variables={"TORCH_DEVICE": "DEVICE"}, reasons={"expects the CPU": "prewarm_normalizes_device_alias"},
    ),
    "torchsde": Suite(
        "0.2.6", ("tests/test_brownian_path.py", "tests/test_brownian_tree.py"),
        (SCIPY, "trampoline==0.1.2", "boltons==25.0.0"), by_default=False,
        edits=(("tests", *CUDA),),
    ),
}  # fmt: skip
