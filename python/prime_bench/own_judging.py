"""Outputs for tasks of one's own, read and judged as those for built-in tasks are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .own_env import KINDS, OwnStepEnv, kinds_of
from .own_instance import OwnInstance

_TAG = r"(?is)<{0}>(.*?)</{0}>"
_FENCE = re.compile(r"(?s)```[^\n]*\n(.*?)```")
_MISSING = object()


class Read:
    """What an output says: `lines`, or None, and `answer`, which may be missing or unreadable."""

    def __init__(self, output: str | Mapping[str, Any] | Sequence[str]) -> None:
        self.lines: list[str] | None = None
        self.answer: Any = _MISSING
        self.unreadable = False
        if isinstance(output, str):
            self._of_text(output)
        elif isinstance(output, Mapping):
            unknown = [name for name in output if name not in ("actions", "answer")]
            if unknown:
                raise ValueError(f"output: unknown key {unknown[0]!r}: there are actions and answer")
            if output.get("actions") is not None:
                self.lines = [str(line) for line in output["actions"]]
            self.answer = output.get("answer", _MISSING)
        else:
            self.lines = [str(line) for line in output]

    def _of_text(self, text: str) -> None:
        blocks = _FENCE.findall(text)
        actions = re.findall(_TAG.format("actions"), text) or blocks[-1:]
        if actions:
            self.lines = [line.strip() for line in actions[-1].splitlines() if line.strip()]
        answers = re.findall(_TAG.format("answer"), text)
        if not answers and not actions:
            # The bare answer.
            answers = [text]
        if answers:
            try:
                self.answer = json.loads(answers[-1])
            except ValueError:
                self.unreadable = True

    @property
    def has_answer(self) -> bool:
        return self.answer is not _MISSING


def _agrees(read: Read, env: OwnStepEnv) -> bool:
    """Whether an answer beside the trace is that of the trace, or one that the task accepts."""
    if read.unreadable or not read.has_answer:
        return not read.unreadable
    if read.answer == env.answer:
        return True
    scored = env.instance.definition.score_answer(env.instance.input, read.answer)
    return scored is not None and scored >= 1.0


def reward(
    output: str | Sequence[str], instance: OwnInstance, kinds: str | Iterable[str] | None, weights: Sequence[float] | None
) -> tuple[tuple[float, float, float, float, float], list[float]]:
    """The parts of the composite reward, and the reward of each line."""
    read = Read(output)
    lines = read.lines or [""]
    env = OwnStepEnv(instance, kinds=kinds, weights=weights, max_steps=2**62)
    steps: list[float] = []
    for place, line in enumerate(lines):
        steps.append(env.add(line, place + 1 == len(lines), lambda: _agrees(read, env)))
    return env.parts(), steps


def score(answer: str | None, instance: OwnInstance) -> float:
    """0 to 1: what the answer in an output is worth."""
    read = Read(answer or "")
    if not read.has_answer:
        return 0.0
    return instance.score(read.answer)


def judged(
    output: str | Mapping[str, Any], instance: OwnInstance, kinds: str | Iterable[str] | None
) -> dict[str, Any]:
    """The fields of a `Judgement`."""
    counted = kinds_of(kinds, KINDS)
    read = Read(output)
    env = OwnStepEnv(instance, kinds=counted, max_steps=2**62)
    times: dict[tuple[str, str], int] = {}
    first: dict[str, Any] | None = None
    for place, line in enumerate(read.lines or ()):
        expected = env.reference()
        if env.done:
            told: dict[str, Any] = {"violations": ["format"], "refusal": "illegal"}
        else:
            told = env.step(line)[4]
        for name in told["violations"]:
            severity = env.severities.get(name, "critical")
            times[name, severity] = times.get((name, severity), 0) + 1
        if first is None and (told["violations"] or told["refusal"]):
            kind = "format" if told["refusal"] == "unparsable" else "wrong-operation"
            kind = "invariant" if told["refusal"] is None else kind
            broken = tuple(told["violations"])
            first = {"step": place, "percentile": 0.0, "type": kind, "line": line, "expected": expected, "violations": broken}

    clean = read.lines is not None and first is None and env.terminated
    stage = {True: "passed", False: "failed"}
    right = "not-judged"
    if read.has_answer or clean:
        answer = read.answer if read.has_answer else env.answer
        try:
            right = stage[instance.accepts(answer)]
        except ValueError:
            # Nobody but the trace itself says what is right.
            right = stage[clean and _agrees(read, env)]
    elif read.unreadable or read.lines is not None:
        right = "failed"
    try:
        reference = instance.reference_steps()
    except ValueError:
        reference = 0
    return {
        "id": instance.task,
        "format": stage[read.has_answer or read.lines is not None],
        "syntax": "not-judged" if read.lines is None else stage[all(map(str.isprintable, read.lines))],
        "semantic": "not-judged" if read.lines is None else stage[clean],
        "result": right,
        "steps": None if read.lines is None else len(read.lines),
        "reference_steps": reference,
        "partial_credit": None,
        "efficiency": len(read.lines) / reference if read.lines is not None and reference else None,
        "first_error": first,
        "violations": [
            {"constraint": name, "severity": severity, "times": count} for (name, severity), count in times.items()
        ],
        "faithful": None,
    }
