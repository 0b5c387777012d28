#!/usr/bin/env python3
"""An executor for the task jugs: fill a, pour it into b, empty b when it is full."""

import json
import sys


def propose(turn):
    state, given = turn["state"], turn["input"]
    wanted = "empty b" if state["b"] == given["B"] else "pour a b" if state["a"] else "fill a"
    others = ["fill a", "fill b", "empty a", "pour b a", "pour a b", "empty b"]
    return next(line for line in [wanted, *others] if line not in turn["excluded"])


def main():
    json.loads(sys.stdin.readline())
    print(json.dumps({"prime": 1}), flush=True)
    for line in sys.stdin:
        turn = json.loads(line)
        print(json.dumps({"id": turn["id"], "action": propose(turn)}), flush=True)


if __name__ == "__main__":
    main()
