# SPDX-License-Identifier: BSD-3-Clause
"""Prints the table of PyTorch's C++ meta functions, from the list of operators in PyTorch itself.

meta_functions.py native_functions.yaml
"""

import re
import sys
from pathlib import Path


# [common.meta-functions.list] PyTorch's list marks the forms of structured operators, and all its entries look alike.
def structured(text):
    """For each form its operator, its overload, whether it is the `.out` form, and whether its
    sizes may be symbols."""
    for entry in re.split(r"^- func: ", text, flags=re.MULTILINE)[1:]:
        marked = re.search(r"^  structured(_delegate)?:", entry, re.MULTILINE)
        if marked:
            name, overload = re.match(r"(\w+)(?:\.(\w+))?\(", entry).groups(default="")
            yield name, overload, not marked[1], "SymInt" in entry.splitlines()[0]


# [common.meta-functions.row] PyTorch names a meta function after the operator, and its type after the overload, too.
def row(name, overload, is_out, symbolic):
    function = name + "_symint" * symbolic + "_outf" * is_out
    kind = f"{name}_{overload}" if overload else name
    return f'META("{name}", "{overload}", {function}, {kind})'


if __name__ == "__main__":
    for form in structured(Path(sys.argv[1]).read_text()):
        print(row(*form))

# [-]
