# SPDX-License-Identifier: BSD-3-Clause
"""The passages check refuses what resembles a marker, and names that mislead."""

from small_book import CPP, PY, SOUND, listing, says

FORM = "[chapter.name] Sentence.`, its name of two words or more."
BRACE = "}  // namespace openreg"

test_refuses_what_resembles_a_marker = says({
    line: (
        {CPP: ("REGISTER(Guard);", f"REGISTER(Guard);\n{line}")},
        f"{CPP}:19: `{line.strip()}` looks like a marker and is none; a marker is `// {FORM}")
    for line in (
        "// [begin, end)",
        "// see // [device.y]",
        "int x;  // [device.y] Behind code.",
        "/// [device.y] For Doxygen.",
        "//[device.y] Without a space.",
        "//  [device.y] With two spaces.",
        "// [device] One word.",
        "// [Device.y] A capital.",
        "// [device.y] Ends in a space. ",
        "# [device.y] In the other language.",
    )
} | {
    line: (
        {PY: ("# [-]", f"{line}\n# [-]")},
        f"{PY}:19: `{line}` looks like a marker and is none; a marker is `# {FORM}")
    for line in ("## [hooks.y] Two.", "#[hooks.y] No space.", "# [0, 1)")
})  # fmt: skip

test_refuses = says({
    "a name that is not unique": (
        {CPP: ("[-]", "[device.guard] Again.\nint x;\n\n// [-]")},
        f"{CPP}:20: [device.guard] is also at {CPP}:6; names are unique...."),
    "a name of another chapter": (
        {CPP: ("[device.guard.register]", "[hooks.error]")},
        f"{CPP}:17: [hooks.error] must start with `device.` in this directory...."),
    "a name of a chapter in common": (
        {"common/check.h": ("[common.error]", "[hooks.error]")},
        "common/check.h:3: [hooks.error] must start with `common.` in this directory...."),
    "a heading without a full stop": (
        {CPP: ("PyTorch finds it.", "Does PyTorch find it?")},
        f"{CPP}:17: the heading 'Does PyTorch find it?' does not end with a full stop."),
    "a named passage without a heading": (
        {CPP: (" PyTorch finds it.", "")},
        f"{CPP}:17: [device.guard.register] has no heading; write a sentence after it."),
    "a hidden passage that does not say why": (
        {CPP: (BRACE, f"int hidden;\n{BRACE}")},
        f"{CPP}:20: [-] hides 1 lines and does not say why; write a sentence after it...."),
})  # fmt: skip

test_accepts = says({
    "names that begin with python and common in their folders": (
        {"python/torch_openreg/__init__.py": "# [python.start] It begins.\nx = 1\n\n# [-]\n",
         "common/openreg/memory.c": "// [common.memory] It has some.\nint x;\n\n// [-]\n",
         "docs/start.md": listing("python.start") + listing("common.memory")},
        "5 files, 8 passages, 16 lines shown, 0.0% hidden"),
})  # fmt: skip

test_accepts_without_a_reason = says({
    line: ({CPP: (BRACE, line)}, SOUND)
    for line in (
        "",
        "}",
        "} // namespace",
        "}}  // namespace a::b",
        "namespace a { namespace b {",
        "inline namespace c {",
        "namespace {",
        "#include <memory>  // for std::unique_ptr",
        "#pragma once",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        '#ifdef __cplusplus\n}  // extern "C"\n#endif',
    )
})  # fmt: skip
