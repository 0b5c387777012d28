"""Tasks of one's own: what `serve` answers, and what `check` finds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prime_bench
from prime_bench import Broken, Refused, Task, check

JUGS = '''
import prime_bench

class Jugs(prime_bench.Task):
    name = "jugs"
    statement = "Fill, empty and pour until one of the jugs holds the goal."
    constraints = [{"name": "repeat", "severity": "critical"}]
    MOVES = ["fill a", "fill b", "empty a", "empty b", "pour a b", "pour b a"]

    def start(self, given):
        if given["goal"] > max(given["A"], given["B"]):
            raise prime_bench.Refused("the goal is larger than both jugs")
        return {"a": 0, "b": 0, "seen": [[0, 0]]}

    def apply(self, given, state, line):
        if line not in self.MOVES:
            raise prime_bench.Refused("not one of the six moves")
        a, b = state["a"], state["b"]
        poured = {"pour a b": min(a, given["B"] - b), "pour b a": -min(b, given["A"] - a)}.get(line, 0)
        a = {"fill a": given["A"], "empty a": 0}.get(line, a - poured)
        b = {"fill b": given["B"], "empty b": 0}.get(line, b + poured)
        return {"a": a, "b": b, "seen": [*state["seen"], [a, b]]}

    def violations(self, given, state, line, after):
        repeats = [after["a"], after["b"]] in state["seen"]
        return [prime_bench.Broken("repeat", "the jugs were like this before")] if repeats else []

    def done(self, given, state):
        return given["goal"] in (state["a"], state["b"])

    def answer(self, given, state):
        return given["goal"]

    def choices(self, given, state):
        return self.MOVES
'''


def test_a_task_is_served(tmp_path: Path) -> None:
    program = tmp_path / "jugs.py"
    program.write_text(JUGS + "\nprime_bench.serve(Jugs())\n")
    given = {"A": 3, "B": 5, "goal": 4}
    requests: list[dict[str, Any]] = [
        {"prime": 1, "role": "task", "name": "jugs"},
        {"id": 1, "input": given},
        {"id": 2, "input": given, "state": {"a": 0, "b": 0, "seen": [[0, 0]]}, "line": "fill b"},
        {"id": 3, "input": given, "state": {"a": 2, "b": 5, "seen": []}, "line": "pour b a"},
        {"id": 4, "input": given, "state": {"a": 0, "b": 0, "seen": [[0, 0]]}, "line": "empty a"},
        {"id": 5, "input": given, "state": {"a": 0, "b": 0, "seen": []}, "line": "drink"},
        {"id": 6, "input": {"A": 1, "B": 2, "goal": 3}},
        {"id": 7, "input": {}},
    ]
    text = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([sys.executable, str(program)], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]

    assert answers[0]["task"]["name"] == "jugs"
    assert answers[1]["state"] == {"a": 0, "b": 0, "seen": [[0, 0]]} and answers[1]["steps_max"] == 1000
    assert answers[2] == {"id": 2, "state": {"a": 0, "b": 5, "seen": [[0, 0], [0, 5]]}, "choices": answers[1]["choices"]}
    assert answers[3] == {"id": 3, "state": {"a": 3, "b": 4, "seen": [[3, 4]]}, "done": True, "answer": 4}
    assert answers[4]["violations"] == [
        {"name": "repeat", "severity": "critical", "message": "the jugs were like this before"}
    ]
    assert answers[5] == {"id": 5, "refused": "not one of the six moves"}
    assert answers[6] == {"id": 6, "refused": "the goal is larger than both jugs"}
    assert answers[7] == {"id": 7, "error": "KeyError: 'goal'"}


def test_the_example_of_the_page_is_true(capfd: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "your-task.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    exec(compile(block, "your-task.md", "exec"), {})
    assert capfd.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", block)


def jugs() -> Task:
    scope: dict[str, Any] = {}
    exec(JUGS, scope)  # the same source as the program's
    task: Task = scope["Jugs"]()
    return task


def test_a_right_task_has_no_problems() -> None:
    report = check(jugs(), {"A": 3, "B": 5, "goal": 4})
    assert report and report.ends > 0, str(report)
    assert str(report).startswith("jugs: ") and "nothing is wrong" in str(report)


class Wrong(Task):
    name = "wrong"
    statement = "Go."

    def start(self, given: Any) -> Any:
        return 0

    def apply(self, given: Any, state: Any, line: str) -> Any:
        return state + 1

    def choices(self, given: Any, state: Any) -> list[str]:
        return ["go"]


def found(task: Task, given: Any = None) -> str:
    return str(check(task, given, states=20))


def test_what_no_task_may_do_is_found() -> None:
    class Refuses(Wrong):
        def apply(self, given: Any, state: Any, line: str) -> Any:
            raise Refused("no")

    class Differs(Wrong):
        count = 0

        def apply(self, given: Any, state: Any, line: str) -> Any:
            self.count += 1
            return self.count

    class Changes(Wrong):
        def start(self, given: Any) -> Any:
            return []

        def apply(self, given: Any, state: Any, line: str) -> Any:
            state.append(1)
            return state

    class NotJson(Wrong):
        def apply(self, given: Any, state: Any, line: str) -> Any:
            return float("nan")

    class Fatal(Wrong):
        def violations(self, given: Any, state: Any, line: str, after: Any) -> list[Broken]:
            return [Broken("x", severity="fatal")]

    class Endless(Wrong):
        def apply(self, given: Any, state: Any, line: str) -> Any:
            return min(state + 1, 3)

    assert "is among the choices, but refused: no" in found(Refuses())
    assert "is answered differently the second time" in found(Differs())
    assert "changes the input or the state" in found(Changes())
    assert "ValueError" in found(NotJson())
    assert "a severity is critical, major or minor" in found(Fatal())
    assert "no state that can be reached is an end" in found(Endless())
    assert prime_bench.Task().steps_max(None) == 1000
