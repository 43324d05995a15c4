# SPDX-License-Identifier: BSD-3-Clause
"""Adds a counter to a trace: how many commands of each device are in flight."""


def add_commands_in_flight(trace):
    """Adds the events of the counter to a trace as `json.load` gave it."""
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    enqueued = {
        e["args"]["correlation"]: e["ts"]
        for e in slices
        if e["cat"] == "privateuse1_runtime" and e.get("args", {}).get("correlation")
    }
    changes = []
    for e in slices:
        begin = enqueued.get(e.get("args", {}).get("correlation"))
        if e["cat"] != "privateuse1_runtime" and begin is not None:
            changes += [(begin, 1, e["pid"]), (e["ts"] + e["dur"], -1, e["pid"])]
    in_flight = {}
    for time, change, device in sorted(changes):
        in_flight[device] = in_flight.get(device, 0) + change
        trace["traceEvents"].append(
            {
                "ph": "C",
                "name": "commands in flight",
                "pid": device,
                "ts": time,
                "args": {"commands": in_flight[device]},
            }
        )
