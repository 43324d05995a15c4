# SPDX-License-Identifier: BSD-3-Clause
"""The exercises of the thousand lines: what breaks when a line is changed, by their solutions."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from broken import Broken
from test_first import FIRST, copy_package, environment

PATCHES = sorted(FIRST.glob("*/solutions/*.patch"))


@pytest.fixture(scope="session")
def failing(tmp_path_factory):
    """For each solution the claims that fail with its change, each over a build of its own."""
    folder, build = (tmp_path_factory.mktemp("first") / name for name in ("sites", "build"))
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    for command in (["setup", build, FIRST], ["compile", "-C", build]):
        subprocess.run([*meson, *command], check=True, env=environment(), stdout=subprocess.DEVNULL)
    copy_package(build, folder / "whole")

    def broken(patch):
        each = Broken(patch)
        return each.failing(environment(each.make(build, folder / "whole", folder / patch.stem)))

    with ThreadPoolExecutor(2) as pool:
        return {patch: pool.submit(broken, patch) for patch in PATCHES}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_breaking_it_fails_the_claims_that_the_solution_names(failing, patch):
    assert failing[patch].result() == Broken(patch).fails
