# SPDX-License-Identifier: BSD-3-Clause
"""The passages check holds a divided chapter to its sections: folders, pages and their order."""

from functools import partial

import small_book
from small_book import DEVICE, listing

MESON, STREAMS = "chapters/device/meson.build", "docs/device/streams.md"
QUEUE, CACHE = "chapters/device/streams/queue.h", "chapters/device/memory/cache.h"
SOUND = "6 files, 8 passages, 16 lines shown, 0.0% hidden"
MUST_NOT_KNOW = "{}:1: {} comes before {} and must not know it; it may use {}."


def header(name):
    return f"#pragma once\n\n// [device.{name}] One.\nint {name};\n\n// [-]\n"


LAST = listing("common.error")
DIVIDED = {
    MESON: "sections = ['streams', 'memory']\n",
    QUEUE: header("queue"),
    CACHE: header("cache"),
    STREAMS: listing("device.queue"),
    "docs/device/memory.md": listing("device.cache"),
    DEVICE: (LAST, LAST + "```{toctree}\ndevice/streams\ndevice/memory\n```\n"),
}
says = partial(small_book.says, before=DIVIDED)

test_accepts = says({
    "a divided chapter": ({}, SOUND),
    "further pages of a long section in a folder of its name": (
        {STREAMS: "", "docs/device/streams/queues.md": listing("device.queue")}, SOUND),
})  # fmt: skip

test_accepts_an_include_of = says({
    f"{used} in {user}": (
        {user: f'#include "{used}"\n'},
        SOUND if "/tests/" in user else SOUND.replace("6 files", "7 files"))
    for used in (QUEUE, CACHE)
    for user in (
        "chapters/device/memory/cache.cpp",  # a later section, or its own
        "chapters/device/guard_streams.cpp",  # a source beside the sections
        "chapters/device/streams/tests/queue_test.cpp",
        "chapters/hooks/host_memory.cpp",  # a later chapter
    )
})  # fmt: skip

test_refuses = says({
    "a section on another page than its own": (
        {STREAMS: "", DEVICE: (LAST, LAST + listing("device.queue"))},
        f"{DEVICE}:19: [device.queue] belongs on the page of its section, {STREAMS}."),
    "an include of a later section": (
        {QUEUE: ("#pragma once", f'#include "{CACHE}"')},
        MUST_NOT_KNOW.format(QUEUE, "streams", "memory", "streams")),
    "an import of a later section": (
        {"chapters/device/memory/_memory.py": "",
         "chapters/device/streams/_stream.py": "from . import _memory\n"},
        MUST_NOT_KNOW.format("chapters/device/streams/_stream.py", "streams", "memory", "streams")),
    "a section in a header beside the sections": (
        {"chapters/device/runtime.h": f'#include "{QUEUE}"\n'},
        MUST_NOT_KNOW.format(*["chapters/device/runtime.h"] * 2, "streams", "none")),
    "a folder with code that is no section": (
        {MESON: (", 'memory'", "")},
        f"{MESON}:1: the folder memory is not in `sections`; add it there...."),
    "a section without code": (
        {MESON: ("'memory'", "'memory', 'guard'")},
        f"{MESON}:1: the section guard has no code; take it from `sections`...."),
    "another order of the toctree": (
        {DEVICE: ("device/streams\ndevice/memory", "device/memory\ndevice/streams")},
        f"{DEVICE}:1: the toctree has the sections ['memory', 'streams']; the order in"
        f" {MESON} is ['streams', 'memory']."),
})  # fmt: skip
