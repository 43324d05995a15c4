# SPDX-License-Identifier: BSD-3-Clause
"""Makes and judges the programs of one kind, for run.py: a process of its own, because a program may end it."""

import importlib
import json
import os
import sys


def main(kind):
    # What the program under test prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(word, value=None):
        print(word, json.dumps(value), file=answers, flush=True)

    module = importlib.import_module(f"random_{kind}")
    say("ready")
    for request in map(json.loads, sys.stdin):
        lines = request.get("lines")
        if lines is None:
            lines = []
            for line in module.make(request["seed"]):
                lines.append(line)
                say("line", line)
            say("made")
            if request.get("only_make"):
                say("end")
                continue
        say("end", module.judge(lines))


if __name__ == "__main__":
    main(sys.argv[1])
