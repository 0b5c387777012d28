"""Instances of tasks of one's own, with what an instance of a built-in task has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _native
from .own_task import Refused, Task, answered

SEVERITIES = {"critical": 10, "major": 6, "minor": 2}
"""Weights in tenths."""

_registered: dict[str, Task] = {}


def register(task: Task) -> Task:
    """Makes a task known by its name, so that rows of training data can name its instances. Returns it."""
    if not task.name:
        raise ValueError("name: a task that is registered needs one")
    if task.name in _native._slugs():
        raise ValueError(f"name: {task.name} is a task of the benchmark; give another one")
    _registered[task.name] = task
    return task


def registered(name: str) -> Task | None:
    """The task that is registered under a name."""
    return _registered.get(name)


class OwnInstance:
    """An instance of a task of one's own. `prime_bench.StepEnv`, `judge` and `composite_reward` take it like any other.

    Raises `Refused` for an input that the task cannot use.
    """

    id = difficulty = index = base_seed = None
    in_benchmark = False

    def __init__(self, task: Task, given: Any) -> None:
        self.definition = task
        self._text = json.dumps(given, allow_nan=False, ensure_ascii=False, sort_keys=True)
        first = self.ask()
        if "refused" in first:
            raise Refused(first["refused"])
        self.first: dict[str, Any] = first
        """The answer to the question for the start."""
        self.max_steps: int = first["steps_max"]

    def ask(self, state: Any = None, line: str | None = None) -> dict[str, Any]:
        """What the task answers: the start, or a step. Arguments are copies, as if they came from another process."""
        asked: dict[str, Any] = {"input": self.input}
        if line is not None:
            asked.update(state=json.loads(json.dumps(state, allow_nan=False)), line=line)
        told: dict[str, Any] = json.loads(json.dumps(answered(self.definition, asked), allow_nan=False))
        return told

    @property
    def task(self) -> str:
        return self.definition.name

    @property
    def input(self) -> Any:
        return json.loads(self._text)

    @property
    def visible_input(self) -> Any:
        return self.input

    def _follow_hints(self) -> tuple[list[str], Any]:
        lines: list[str] = []
        here = self.first
        while not here.get("done"):
            if here.get("hint") is None or len(lines) >= self.max_steps:
                raise ValueError(f"{self.task}: the task gives no `hint` that leads to an end, so it has no reference")
            lines.append(here["hint"])
            here = self.ask(here["state"], here["hint"])
            if "refused" in here:
                raise ValueError(f"{self.task}: the task refuses its own hint {lines[-1]!r}: {here['refused']}")
        return lines, here["answer"]

    def reference(self) -> list[str]:
        """The lines that the task's hints make. Raises ValueError where they lead to no end."""
        return self._follow_hints()[0]

    def reference_steps(self) -> int:
        return len(self.reference())

    def answer(self) -> Any:
        """The answer to which the task's hints lead. Raises ValueError where they lead to none."""
        return self._follow_hints()[1]

    def score(self, answer: Any) -> float:
        """0 to 1, as `Task.score_answer` says; else whether it equals the answer to which the task's hints lead."""
        scored = self.definition.score_answer(self.input, answer)
        return float(self.answer() == answer) if scored is None else float(scored)

    def accepts(self, answer: Any) -> bool:
        return self.score(answer) >= 1.0

    def prompt(self, style: str = "structured", without: Any = ()) -> str:
        """The task in words: `turns` asks for one line a turn; any other style for the whole trace and the answer, in the tags
        that `judge` reads."""
        task, parts = self.definition, [self.definition.statement]
        if task.step:
            parts.append(f"A step is {task.step}.")
        forms = [form if isinstance(form, str) else form.get("line") or form["form"] for form in task.actions]
        if forms:
            parts.append("Action lines:\n" + "\n".join(f"- {form}" for form in forms))
        named = [f"- {one['name']}: {one.get('meaning', '')}".rstrip(": ") for one in task.constraints]
        if named:
            parts.append("Constraints:\n" + "\n".join(named))
        parts.append("Input: " + json.dumps(self.input, ensure_ascii=False))
        if style == "turns":
            parts.append("State: " + self.observation(self.first))
            parts.append("Write one action line, and nothing else.")
        else:
            parts.append(
                "Write the action lines, one per line, between <actions> and </actions>, and then the answer as JSON "
                "between <answer> and </answer>."
            )
        return "\n\n".join(parts)

    @staticmethod
    def observation(here: Mapping[str, Any]) -> str:
        """A state as a model is shown it."""
        view = here.get("view")
        return view if isinstance(view, str) else json.dumps(here["state"], ensure_ascii=False)

    def _declared(self, constraint: str, field: str, default: str) -> str:
        found = (one.get(field) for one in self.definition.constraints if one["name"] == constraint)
        return next(found, None) or default

    def kind_of(self, constraint: str) -> str:
        """The kind of a constraint: as it is declared, else `invariant`; that of a refused line is `format`."""
        return "format" if constraint == "format" else self._declared(constraint, "kind", "invariant")

    def severity_of(self, constraint: str) -> str:
        return self._declared(constraint, "severity", "critical")

    def __repr__(self) -> str:
        return f"<OwnInstance of {self.task}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnInstance) and (self.task, self._text) == (other.task, other._text)

    def __hash__(self) -> int:
        return hash((self.task, self._text))
