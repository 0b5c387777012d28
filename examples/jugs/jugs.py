#!/usr/bin/env python3
"""Measure water with two jugs: a task of one's own. docs/your-task.md explains it line by line."""

import json
import math
import sys

MOVES = ["fill a", "fill b", "empty a", "empty b", "pour a b", "pour b a"]
TASK = {
    "name": "jugs",
    "title": "Two jugs",
    "statement": "Jug a holds A litres and jug b holds B. Fill, empty and pour until one of them holds the goal.",
    "step": f"one of: {', '.join(MOVES)}",
    "actions": ["<fill|empty> <a|b>", "pour a b", "pour b a"],
    "example": {"A": 3, "B": 5, "goal": 4},
    "constraints": [{"name": "repeat", "severity": "critical", "meaning": "the jugs were like this before"}],
}


def start(given):
    a, b, goal = given["A"], given["B"], given["goal"]
    if min(a, b, goal) < 1:
        return {"refused": "A, B and goal must be positive"}
    if goal > max(a, b) or goal % math.gcd(a, b):
        return {"refused": f"{goal} litres cannot be measured with {a} and {b}"}
    return {"state": {"a": 0, "b": 0, "seen": [[0, 0]]}, "choices": MOVES, "steps_max": (a + 1) * (b + 1)}


def step(given, state, line):
    if line not in MOVES:
        return {"refused": f"not one of {', '.join(MOVES)}"}
    a, b = state["a"], state["b"]
    poured = {"pour a b": min(a, given["B"] - b), "pour b a": -min(b, given["A"] - a)}.get(line, 0)
    a = {"fill a": given["A"], "empty a": 0}.get(line, a - poured)
    b = {"fill b": given["B"], "empty b": 0}.get(line, b + poured)

    after = {"state": {"a": a, "b": b, "seen": [*state["seen"], [a, b]]}, "choices": MOVES}
    if [a, b] in state["seen"]:
        after["violations"] = [{"name": "repeat", "message": f"{a} and {b} litres were there before"}]
    elif given["goal"] in (a, b):
        after.update(done=True, answer={"litres": given["goal"]})
    return after


def main():
    json.loads(sys.stdin.readline())
    print(json.dumps({"prime": 1, "task": TASK}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        given = asked["input"]
        answer = step(given, asked["state"], asked["line"]) if "line" in asked else start(given)
        print(json.dumps({"id": asked["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
