# SPDX-License-Identifier: BSD-3-Clause
"""How large the installed libraries are, and how many symbols they export."""

import subprocess
from pathlib import Path

import torch_openreg
from measure import report


def main():
    for library in sorted(Path(torch_openreg.__file__).parent.glob("*.so")):
        names = ["nm", "-D", "--defined-only", str(library)]
        lines = subprocess.run(
            names, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        name = library.name.partition(".")[0]
        report("libraries", name, {"size": [library.stat().st_size]}, unit="bytes")
        report("libraries", f"{name}, exported", {"size": [len(lines)]}, unit="symbols")


if __name__ == "__main__":
    main()
