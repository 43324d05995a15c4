# SPDX-License-Identifier: BSD-3-Clause
import py_compile

import pytest
import torch
from fresh import PACKAGE, USE, built_for, copy_of_us, install, run, say_built_for

NOVA = "import torch\ntorch.utils.rename_privateuse1_backend('nova')"


def import_both(between=""):
    return f"import torch; print('torch works')\n{between}\nimport torch_openreg"


def warns_and_raises(result, sentence):
    """`import torch` went on with a warning that has the sentence; `import torch_openreg` did not.

    Returns what was printed between the two.
    """
    assert result.stdout.startswith("torch works\n"), result.stderr
    assert f"UserWarning: This process has no device openreg: {sentence}" in result.stderr
    assert f"Error: {sentence}" in result.stderr
    return result.stdout.removeprefix("torch works\n")


@pytest.fixture(params=built_for()[1])
def for_another_torch(request, tmp_path):
    """A copy of us that says it was built for another torch, and whose libraries cannot be opened."""
    say_built_for(copy_of_us(tmp_path), request.param)
    for library in (tmp_path / "torch_openreg").glob("*.so"):
        library.unlink()
        library.write_text("not a library")
    return request.param, {"PYTHONPATH": str(tmp_path)}


def test_built_for_another_torch_says_both_versions_and_leaves_pytorch_as_it_was(
    for_another_torch, tmp_path
):
    program = (
        "print(torch._C._get_privateuse1_backend_name(), hasattr(torch, 'openreg'))\n"
        "print(torch.accelerator.current_accelerator(check_available=True))\n"
        "try: torch.device('openreg')\n"
        "except RuntimeError as error: print(error)"
    )
    (tmp_path / "program.py").write_text(import_both(program))
    another, path = for_another_torch
    result = run("program.py", cwd=tmp_path, **path)
    sentence = (
        f"torch_openreg 0.1.0 was built for torch {another}, but this is torch {torch.__version__}; "
        f"its sources support torch {built_for()[2]}: build it again with `pip install"
    )
    said = warns_and_raises(result, sentence)
    assert said.startswith("privateuseone False\nNone\nExpected one of cpu")
    # The warning is about the line of the program, not about one of ours.
    assert f"{tmp_path / 'program.py'}:1: UserWarning: This process" in result.stderr


def test_even_if_warnings_are_errors_pytorch_can_be_imported(for_another_torch):
    program = ("-W", "error", "-c", "import torch; print('torch works')")
    result = run(*program, **for_another_torch[1])
    assert result.stdout == "torch works\n", result.stderr
    assert result.stderr.startswith("This process has no device openreg: torch_openreg 0.1.0 was")


def test_without_a_device_asking_is_quiet_and_use_says_so():
    program = (
        "import torch; print(torch.device('openreg'), torch.openreg.is_available(),"
        "torch.openreg.device_count(), torch.accelerator.is_available()); torch.manual_seed(1)\n"
        "def use_storage(): torch.UntypedStorage(4, device='openreg')\n"
        "def use_device(): torch.openreg.set_device(0)\n"
        "def use_generator(): torch.Generator('openreg')\n"
        "def use_stream(): torch.Stream('openreg')\n"
        "for use in use_storage, use_device, use_generator, use_stream:\n"
        "    try: use()\n"
        "    except RuntimeError as error: print(error)"
    )
    result = run("-W", "error", "-c", program, OPENREG_DEVICE_COUNT="0")
    said = "openreg False 0 False\n" + "This machine has no openreg device.\n" * 4
    assert (result.stdout, result.stderr) == (said, "")


def test_after_another_backend_we_step_back_name_it_and_let_it_work(tmp_path):
    program = import_both("print(torch.device('nova'), hasattr(torch, 'openreg'))")
    result = run("-c", program, path=[install(tmp_path, "nova", NOVA)])
    sentence = "torch_openreg cannot be loaded beside the backend nova:"
    assert warns_and_raises(result, sentence) == "nova False\n"


SETUP = (
    "from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as setup"
)


def test_after_a_backend_that_kept_pytorchs_name_we_step_back(tmp_path):
    result = run("-c", import_both(), path=[install(tmp_path, "nameless", f"{SETUP}\nsetup()")])
    sentence = "torch_openreg cannot be loaded beside the backend privateuseone:"
    assert warns_and_raises(result, sentence) == ""


def test_after_a_backend_that_has_only_hooks_we_step_back(tmp_path):
    hooks = "import torch\ntorch._C._acc.register_python_privateuseone_hook(HOOKS)"
    (tmp_path / "half.py").write_text(
        "import torch\nclass Hooks(torch._C._acc.PrivateUse1Hooks):\n    pass\nHOOKS = Hooks()\n"
    )
    install(tmp_path, "half", "from half import HOOKS\n" + hooks)
    result = run("-c", import_both(), path=[tmp_path])
    sentence = "torch_openreg cannot be loaded beside a backend that registered its hooks before:"
    assert warns_and_raises(result, sentence) == ""


def test_before_another_backend_pytorch_names_both_and_the_switch(tmp_path):
    # Python reads the folders of its path in their order, and we are in the first.
    path = [PACKAGE.parent, install(tmp_path, "nova", NOVA)]
    result = run("-c", "import torch", path=path)
    assert "already been set! Current backend: openreg" in result.stderr
    assert "Failed to load the backend extension: nova. You can disable extension" in result.stderr
    program = f"import torch, torch_openreg; {USE}"
    result = run("-c", program, path=path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (result.stdout, result.stderr) == ("fine\n", "")


def test_an_owner_of_our_name_is_named_with_its_file(tmp_path):
    twin = "import torch, twin\ntorch.utils.rename_privateuse1_backend('openreg')\n"
    install(tmp_path, "twin", f"{twin}torch._register_device_module('openreg', twin)")
    (tmp_path / "twin.py").touch()
    result = run("-c", import_both(), path=[tmp_path])
    sentence = f"the device openreg was registered already, by <module 'twin' from '{tmp_path / 'twin.py'}'>;"
    assert warns_and_raises(result, sentence) == ""


FILE = "torch_openreg/__init__.py"


@pytest.mark.parametrize("first", ["torch", "torch_openreg"])
def test_of_two_copies_the_first_is_used_and_both_are_named_at_the_programs_line(tmp_path, first):
    (tmp_path / "program.py").write_text(f"\nimport {first}, torch\n{USE}")
    result = run("program.py", path=[copy_of_us(tmp_path)], cwd=tmp_path)
    used, other = tmp_path / FILE, PACKAGE.resolve().parent / FILE
    assert result.stdout == "fine\n"
    assert (
        f"{tmp_path / 'program.py'}:2: UserWarning: torch_openreg was imported from {used}, "
        f"but there is another in {other};" in result.stderr
    )


def test_if_warnings_are_errors_two_copies_are_no_device_and_no_harm(tmp_path):
    program = (
        "import torch; print('torch works')\n"
        "for _ in range(2):\n"
        "    try: import torch_openreg\n"
        "    except UserWarning as warning: print(warning)\n"
    )
    result = run("-W", "error", "-c", program, path=[copy_of_us(tmp_path)])
    sentence = f"torch_openreg was imported from {tmp_path / FILE}, but there is another in "
    assert result.stderr.startswith(f"This process has no device openreg: {sentence}")
    assert result.stdout.startswith("torch works\n"), result.stderr
    assert result.stdout.count(sentence) == 2


def test_a_second_path_to_us_and_a_second_entry_point_are_no_second_copy(tmp_path):
    install(tmp_path, "again", "import torch_openreg_entry\ntorch_openreg_entry.load()")
    (tmp_path / "link").symlink_to(PACKAGE.parent)
    result = run("-c", f"import torch; {USE}", path=[tmp_path, tmp_path / "link"])
    assert (result.stdout, result.stderr) == ("fine\n", "")


def test_a_build_without_this_chapter_does_not_use_the_entry_point_of_another_copy(tmp_path):
    earlier = copy_of_us(tmp_path)
    (earlier / "torch_openreg_autoload.py").unlink()
    (earlier / "torch_openreg.dist-info/entry_points.txt").write_text("[torch.backends]\n")
    result = run("-c", "import torch; torch.device('openreg')", path=[earlier])
    assert "Expected one of cpu" in result.stderr


def test_a_library_that_cannot_be_opened_takes_no_name(tmp_path):
    for library in (copy_of_us(tmp_path) / "torch_openreg").glob("lib*.so"):
        library.unlink()
        library.write_text("not a library")
    program = (
        "print(torch.accelerator.is_available(), hasattr(torch, 'openreg'))\n"
        "list(torch.utils.data.DataLoader(torch.ones(2), pin_memory=True))\n"
        "print(torch._C._get_privateuse1_backend_name(), 'is free')"
    )
    result = run("-c", import_both(program), PYTHONPATH=str(tmp_path))
    said = warns_and_raises(result, f"{tmp_path}/torch_openreg/lib")
    assert said == "False False\nprivateuseone is free\n"


def test_python_files_without_libraries_say_how_to_get_them(tmp_path):
    for library in (copy_of_us(tmp_path) / "torch_openreg").glob("*.so"):
        library.unlink()
    result = run("-c", import_both(), PYTHONPATH=str(tmp_path))
    sentence = f"torch_openreg's libraries are not in {tmp_path / 'torch_openreg'}; build them with"
    assert warns_and_raises(result, sentence) == ""


def test_an_installation_without_one_of_its_files_takes_no_name(tmp_path):
    (copy_of_us(tmp_path) / "torch_openreg/_memory.py").unlink()
    program = (
        "print(torch._C._get_privateuse1_backend_name(), hasattr(torch, 'openreg'))\n"
        "try: torch.device('openreg')\n"
        "except RuntimeError as error: print(error)"
    )
    result = run("-c", import_both(program), PYTHONPATH=str(tmp_path))
    said = warns_and_raises(result, "No module named 'torch_openreg._memory'")
    assert said.startswith("privateuseone False\nExpected one of cpu")


def cut(folder, name, content):
    """One file of a copy of us has `content` instead of its own, as after an interrupted copy."""
    (path,) = (*copy_of_us(folder).glob(name), *folder.glob(f"torch_openreg/{name}"))
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("_memory.py", b"def empty_cache(", "SyntaxError: '(' was never closed"),
    ("_memory.py", b"", "AttributeError: module 'torch_openreg._memory' has no attribute"),
    ("_chapters.py", b"", "cannot import name 'MODULES' from 'torch_openreg._chapters'"),
    ("__init__.py", b"", "AttributeError: module 'torch_openreg' has no attribute '_register'"),
    ("__init__.py", b"import torch\nif", "SyntaxError: invalid syntax"),
    ("_C.*.so", b"", "file too short"),
    ("libtorch_openreg.so", b"\x7fELF", "file too short"),
    ("torch_openreg_autoload.py", b"", "cannot import name 'autoload'"),
    ("torch_openreg_autoload.py", b"def autoload(", "SyntaxError: '(' was never closed"),
    ("torch_openreg_autoload.py", b"import gone", "No module named 'gone'"),
])  # fmt: skip
def test_a_file_that_was_cut_short_is_one_warning(tmp_path, name, content, sentence):
    cut(tmp_path, name, content)
    program = (
        "import torch\n"
        "assert torch._C._get_privateuse1_backend_name() == 'privateuseone'\n"
        "print(torch.ones(2).sum().item(), hasattr(torch, 'openreg'))\n"
    )
    (tmp_path / "program.py").write_text(program)
    result = run("program.py", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert result.stdout == "2.0 False\n", result.stderr
    assert result.stderr.count("UserWarning") == result.stderr.count("no device openreg") == 1
    assert f"{tmp_path / 'program.py'}:1: UserWarning: This process has no" in result.stderr
    assert sentence in result.stderr
    if name == "torch_openreg_autoload.py":  # The entry point's own warning.
        strict = run("-W", "error", "program.py", cwd=tmp_path, PYTHONPATH=str(tmp_path))
        assert strict.stdout == "2.0 False\n", strict.stderr


def test_a_module_without_its_source_and_cut_short_is_one_warning(tmp_path):
    source = copy_of_us(tmp_path) / "torch_openreg/_memory.py"
    compiled = source.with_suffix(".pyc")
    py_compile.compile(str(source), str(compiled))
    source.unlink()
    whole = compiled.read_bytes()
    for content, sentence in (
        (whole[:60], "EOFError: marshal data too short"),
        (b"none" + whole[4:], "bad magic number in 'torch_openreg._memory'"),
    ):
        compiled.write_bytes(content)
        result = run("-c", "import torch; print('torch works')", PYTHONPATH=str(tmp_path))
        assert result.stdout == "torch works\n", result.stderr
        assert "UserWarning: This process has no device openreg: " in result.stderr
        assert sentence in result.stderr
