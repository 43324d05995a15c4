# SPDX-License-Identifier: BSD-3-Clause
"""Writes a driver of which no function works, from the headers that declare it.

Each function refuses with its own name. Alone, they are a library to link against on a machine
without the real one. With the sources of a driver, they are the functions that it does not have.
A header of yours may declare more functions, in the form in which those of the interface do.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEAD = """\
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "torch_openreg/common/openreg/core/failure.h"

static orError_t refuse(const char* function) noexcept {
  try {
    return openreg::hardware::fail(orErrorNotSupported, "This driver does not have ", function, ".");
  } catch (...) {
    return openreg::hardware::failWithException();
  }
}

"""
DECLARED = re.compile(
    r"OPENREG_EXPORT\s+([\w\s*]+?)\s*\b(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*OPENREG_NOEXCEPT;"
)


def body(returned: str, function: str) -> str:
    if function.endswith("DeviceIsStarted"):  # Every process asks at its end.
        return "*started = 0; return orSuccess;"
    if returned.endswith("Error_t"):
        return f'return refuse("{function}");'
    return "" if returned == "void" else "return 0;"


def stub(headers: list[str], sources: list[str]) -> str:
    """The definitions of what `headers` declare and `sources`, their texts, do not define."""
    found = []
    for header in headers:
        for returned, function, arguments in DECLARED.findall(re.sub(r"//[^\n]*", "", header)):
            if any(re.search(rf"^[^/\n]*\b{function}\([^;]*?\{{", text, re.M) for text in sources):
                continue
            found.append(
                f"{returned} {function}({' '.join(arguments.split())}) noexcept"
                f" {{ {body(returned, function)} }}\n"
            )
    return "".join(found)


def main(output: str, *files: str) -> None:
    texts = {file: Path(file).read_text(encoding="utf-8") for file in files}
    headers = [file for file in files if file.endswith(".h")]
    for header in headers:
        if not DECLARED.search(texts[header]):
            sys.exit(
                f"{header} declares no function for the stub, which takes only lines such as "
                "`OPENREG_EXPORT orError_t orFree(void* devPtr) OPENREG_NOEXCEPT;`."
            )
    includes = "".join(f'#include "{Path(header).resolve()}"\n' for header in headers)
    definitions = stub(
        [texts[file] for file in headers],
        [text for file, text in texts.items() if file not in headers],
    )
    Path(output).write_text(includes + HEAD + definitions, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
