# SPDX-License-Identifier: BSD-3-Clause
"""Finds where a program waits for the device, in the trace of a profile."""

import json


def waits(path, least_us=1000):
    """(annotation, operator, microseconds) of each wait of the host, the longest first.

    The annotation is the innermost one around the call, the operator the outermost: what the
    program wrote.
    """
    with open(path, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    by_command = {
        e["args"]["correlation"]: e["ts"] + e["dur"]
        for e in events
        if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
    }

    def around(call, category):
        """The names of the slices of a category that the call is in, outermost first."""
        outer = [
            e["name"]
            for e in sorted(events, key=lambda e: (e["ts"], -e["dur"]))
            if e.get("cat") == category
            and e["tid"] == call["tid"]
            and e["ts"] <= call["ts"]
            and call["ts"] + call["dur"] <= e["ts"] + e["dur"]
        ]
        return outer or [""]

    found = []
    for call in events:
        if call.get("cat") != "privateuse1_runtime" or call["dur"] < least_us:
            continue
        ended = by_command.get(call.get("args", {}).get("correlation"), float("inf"))
        if "Synchronize" in call["name"] or call["ts"] + call["dur"] > ended:
            annotation = around(call, "user_annotation")[-1]
            found.append((annotation, around(call, "cpu_op")[0], call["dur"]))
    return sorted(found, key=lambda wait: -wait[2])
