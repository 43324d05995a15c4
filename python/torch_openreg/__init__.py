# SPDX-License-Identifier: BSD-3-Clause
"""A PyTorch backend for the simulated device openreg; `torch.openreg` is this package."""

import importlib.util
import os
import sys
import warnings

# [python.built] A source tree has no libraries, and a build tree has none before it is compiled.
if importlib.util.find_spec("._C", __name__) is None:
    raise ImportError(
        f"torch_openreg's libraries are not in {__path__[0]}; build them with "
        "`meson compile -C build`, and start Python with `meson devenv -C build`"
    )

from ._chapters import MODULES, TORCH_RANGE, TORCH_VERSION, __version__

# [python.name] The name by which PyTorch will know the device.
NAME = "openreg"
_registered = False


# [python.register] Everything that makes this package a backend happens here, once.
def _register():
    """Gives PyTorch the device's name, our libraries and `torch.openreg`.

    Idempotent. Defined above this file's `import torch`, because that import may
    call it, through the entry point, before this file has run to its end.
    """
    global _registered
    if _registered or _is_guest():
        return
    # Perhaps still at the end of its own import, but complete.
    pytorch = sys.modules["torch"]
    _check_torch(pytorch.__version__)
    _check_alone(pytorch)
    _tell_of_copies(pytorch)
    # Before the name is taken: what cannot be imported must leave PyTorch as it was.
    importlib.import_module("._C", __name__)
    _bind_chapters()
    if not hasattr(pytorch, NAME):  # Else this file was run again, by `importlib.reload`.
        pytorch.utils.rename_privateuse1_backend(NAME)
        pytorch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
        pytorch._register_device_module(NAME, sys.modules[__name__])
    _registered = True


# [python.guest] A tool of ours that is asked about another backend must not register.
def _is_guest():
    """Whether this process is `python -m torch_openreg.doctor --device other`, or alike."""
    words = " ".join(sys.orig_argv).replace("=", " ").split()
    if "-m" not in words[:-1] or "--device" not in words[:-1]:
        return False
    if not words[words.index("-m") + 1].startswith(f"{__name__}."):
        return False
    return words[words.index("--device") + 1].partition(":")[0] != NAME


# [python.chapters] The public names of each chapter's modules become names of the package.
def _bind_chapters():
    for module_name in MODULES:
        module = importlib.import_module(f".{module_name}", __name__)
        for name in module.__all__:
            globals()[name] = getattr(module, name)


# [python.version] Libraries built for another minor version of PyTorch must not even be opened.
def _check_torch(version):
    if version.split("+")[0].split(".")[:2] != TORCH_VERSION.split(".")[:2]:
        raise ImportError(
            f"torch_openreg {__version__} was built for torch {TORCH_VERSION}, but this is "
            f"torch {version}; its sources support torch {TORCH_RANGE}: build it again with "
            "`pip install --no-build-isolation .`"
        )


# [python.alone] PyTorch has room for one external backend, the first that registers.
def _check_alone(pytorch):
    name = pytorch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", NAME) or hasattr(pytorch, "privateuseone"):
        raise ImportError(
            f"torch_openreg cannot be loaded beside the backend {name}: PyTorch takes one from "
            "outside, and it came first; uninstall one of the two, or set "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one that you want"
        )
    owner = getattr(pytorch, NAME, sys.modules[__name__])
    if owner is sys.modules[__name__]:
        return
    if getattr(owner, "__file__", None) == __file__:
        raise ImportError(
            f"torch_openreg was removed from sys.modules; PyTorch still has it, as torch.{NAME}, "
            "and its libraries are loaded once in a process: start Python anew"
        )
    raise ImportError(
        f"the device {NAME} was registered already, by {owner!r}; "
        f"torch_openreg in {__file__} cannot be loaded beside it"
    )


# [python.copies] With two copies on the path, a change may not reach the one that runs, so we name both.
def _tell_of_copies(pytorch):
    files = [os.path.join(folder, __name__, "__init__.py") for folder in sys.path]
    others = {os.path.realpath(file) for file in files if os.path.isfile(file)}
    others.discard(os.path.realpath(__file__))
    if not others:
        return
    # The line of the program: neither ours (the entry point's file has our name and more) nor
    # PyTorch's nor Python's.
    between = (*__path__, *pytorch.__path__, "<frozen importlib")
    frame = sys._getframe()
    while frame.f_back and frame.f_code.co_filename.startswith(between):
        frame = frame.f_back
    warnings.warn_explicit(
        f"torch_openreg was imported from {__file__}, but there is another in "
        f"{', '.join(sorted(others))}; uninstall the one or take the other from PYTHONPATH",
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
    )


# [python.import] Whichever of the two is imported first, both end up complete.
import torch  # noqa: E402, F401

_register()

# [-]
