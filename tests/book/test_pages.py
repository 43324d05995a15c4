# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses pages that show code otherwise than in whole passages."""

from small_book import CPP, DEVICE, GUARD, SOUND, listing, says

GUARDED, STREAMS, REGISTER, ERROR = map(
    listing, ("device.guard", "device.guard.streams", "device.guard.register", "common.error")
)
NOT_SHOWN = f"{CPP}:11: [device.guard.streams] is on no page; show it once."
PASTED = "class Guard {\n public:\n\nint count() const { return 1; }\n"
WHOLE = "```{{literalinclude}} ../chapters/device/{}\n```\n"


def more(text):
    """The page of the chapter, with a text below its listings; the text begins in line 19."""
    return {DEVICE: (ERROR, ERROR + text)}


test_accepts = says({
    "what a build leaves under docs": ({"docs/_build/device.md": ERROR}, SOUND),
    "a folder of pages for a chapter": (
        {DEVICE: (REGISTER, ""), "docs/device/registers.md": REGISTER}, SOUND),
    "a quotation of two lines": (more("```cpp\nclass Guard {\n public:\n};\n```\n"), SOUND),
    "our code in another language": (more(f"```text\n{GUARD}```\n"), SOUND),
    "other files, whole or in part": (
        {"chapters/device/session.py": "x = 1  # [not, checked)\n",
         "chapters/device/tests/test_x.cpp": "// [begin, end)\n",
         **more(WHOLE.format("session.py").replace(".py\n", ".py\n:lines: 1\n")
                + WHOLE.format("tests/test_x.cpp")
                + "```{torchinclude} ATen/Nowhere.h\n:start-at: x\n```\n")}, SOUND),
})  # fmt: skip

test_refuses_a_listing_with = says({
    option: (
        {DEVICE: (GUARDED, GUARDED.replace(".guard\n", f".guard\n{option}\n"))},
        f"{DEVICE}:3: the listing of [device.guard] must not say `{option.split(' ')[0]}`; a"
        " passage is shown as it is.")
    for option in (
        ":dedent:", ":lines: 1-3", ":emphasize-lines: 2", ":prepend: int x;", ":tab-width: 4")
})  # fmt: skip

test_refuses_pasted_code = says({
    opening: (
        more(f"{opening}\n{PASTED}{closing}\n"),
        f"{DEVICE}:{20 if 'note' in opening else 19}: this block repeats three lines of our own"
        " code; show them with {literalinclude}.")
    for opening, closing in {
        "```cpp": "```", "~~~python": "~~~", ":::{note}\n```cpp": "```\n:::", "```{code} c": "```"
    }.items()
})  # fmt: skip

test_refuses = says({
    "a name that is like others": (
        {DEVICE: (GUARDED, listing("device.guart"))},
        f"{DEVICE}:3: no passage is named 'device.guart'; there is device.guard,..."),
    "a name that is like none": (
        {DEVICE: (GUARDED, listing("x"))},
        f"{DEVICE}:3: no passage is named 'x'; there is none that is similar...."),
    "a passage and a file in one listing": (
        {DEVICE: (GUARDED, GUARDED.replace("}", f"}} ../{CPP}"))},
        f"{DEVICE}:3: a :passage: is found by its name; leave out ../{CPP}."),
    "a directive whose line has a backtick": (
        more("```{csv-table} What `x` does\n:file: x.csv\n```\n"),
        f"{DEVICE}:19: this line opens no block, because Markdown allows no backtick in it; put the"
        " sentence above the block."),
    "a source that is shown whole": (
        more(WHOLE.format("guard.cpp")),
        f"{DEVICE}:19: {CPP} is shown in passages; name a :passage: of device.guard,"
        " device.guard.streams, device.guard.register."),
    "a file that does not exist": (
        more(WHOLE.format("wall.txt")),
        f"{DEVICE}:19: chapters/device/wall.txt does not exist; name a file relative to this page,"
        " or a :passage:."),
    "a passage on no page": ({DEVICE: (STREAMS, "")}, NOT_SHOWN),
    "a passage in an example of a page": (
        {DEVICE: (STREAMS, f"````markdown\n{STREAMS}````\n")}, NOT_SHOWN),
    "a passage in a block of an example": (
        {DEVICE: (STREAMS, f"````{{code-block}} markdown\n{STREAMS}````\n")}, NOT_SHOWN),
    "a passage on two pages": (
        {"docs/start.md": ERROR},
        f"docs/start.md:1: [common.error] is already at {DEVICE}:15; once is enough."),
    "a passage on the page of another chapter": (
        {DEVICE: (REGISTER, ""), "docs/hooks.md": ("# Hooks\n", f"# Hooks\n\n{REGISTER}")},
        "docs/hooks.md:3: [device.guard.register] belongs on the page of its chapter,"
        f" {DEVICE} or docs/device/."),
    "another order than that of the file": (
        {DEVICE: (GUARDED + STREAMS + REGISTER, REGISTER + STREAMS + GUARDED)},
        f"{DEVICE}:7: [device.guard.streams] comes before [device.guard.register] in {CPP};"
        f" keep the order of the file.\n{DEVICE}:11: [device.guard] comes before"
        f" [device.guard.streams] in {CPP}; keep the order of the file."),
})  # fmt: skip
