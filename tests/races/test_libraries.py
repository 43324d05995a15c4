# SPDX-License-Identifier: BSD-3-Clause
"""`libraries.py`: how it reads a library, and that its table is what two programs of PyTorch give."""

from pathlib import Path

import libraries
import pytest

ROWS = Path(libraries.__file__).with_name("libraries.txt").read_text().splitlines()[1:]
LIBRARY = """
y = x.to("cuda", non_blocking=True)
torch.cuda.current_stream().wait_stream(side)
"""


def test_a_wait_is_a_line_that_can_be_left_out():
    assert libraries.WAIT.fullmatch("    a.b(device=c).wait_stream(d)\n")
    assert libraries.WAIT.fullmatch("  x.record_stream(s)")
    assert not libraries.WAIT.fullmatch("    event = side.record_event()")
    assert not libraries.WAIT.fullmatch("    def synchronize(self):")


def test_cuda_becomes_the_device_where_it_names_one(tmp_path, monkeypatch):
    file = tmp_path / "own==1.0/own/loader.py"
    file.parent.mkdir(parents=True)
    file.write_text(LIBRARY)
    monkeypatch.setattr(libraries, "FOLDER", tmp_path)
    text = libraries.text("own==1.0", "own.loader")
    assert 'x.to("openreg"' in text and "torch.openreg.current_stream" in text
    assert "cuda" not in text


def test_the_table_has_all_programs_and_nothing_is_missed():
    assert [row.split()[0] for row in ROWS] == list(libraries.LIBRARIES)
    assert {row.split()[-1] for row in ROWS} == {"0"}
    versions = {each.package for each in libraries.LIBRARIES.values()} - {"torch"}
    assert all("==" in package for package in versions)


@pytest.mark.parametrize("name", ["fsdp", "staging"])
def test_a_program_of_pytorch_gives_its_row(name):
    [row] = [row.split() for row in ROWS if row.startswith(name)]
    raced, right, reached, said = libraries.run(name)
    assert (raced, len(reached)) == (row[1] == "race", int(row[3])), said
    assert raced or right
