"""Tasks of one's own: a class that says how a problem starts and what a line does to a state.

    class Count(prime_bench.Task):
        name = "count"
        statement = "Count to the goal by ones and twos."

        def start(self, given):
            return 0

        def apply(self, given, state, line):
            if line not in ("1", "2"):
                raise prime_bench.Refused("write 1 or 2")
            return state + int(line)

        def done(self, given, state):
            return state >= given["goal"]

    if __name__ == "__main__":
        prime_bench.serve(Count())

`prime-agents run --task-program 'python3 count.py' --input '{"goal": 5}'` runs it. docs/your-task.md has the protocol.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from .own_instance import OwnInstance

VERSION = 1


class Refused(Exception):
    """A line that cannot be applied in this state, or an input that cannot be used; the message says why."""


class CannotDo(Exception):
    """An agent can never do such a turn; a retry would not help."""


@dataclass(frozen=True)
class Broken:
    """A constraint that a step breaks. Its weight is 1.0 (critical), 0.6 (major) or 0.2 (minor)."""

    name: str
    message: str = ""
    severity: str = "critical"


class Task:
    """A task. Subclasses give `name`, `statement`, `start` and `apply`; all else is optional.

    A state is any JSON. Methods get all that they may depend on as arguments: what they return for the same arguments is
    always the same.
    """

    name: str = ""
    title: str = ""
    statement: str = ""
    step: str = ""
    actions: Sequence[str | Mapping[str, str]] = ()
    constraints: Sequence[Mapping[str, str]] = ()
    #: An input to begin with, which the studio's form shows.
    example: Mapping[str, Any] | None = None

    def start(self, given: Any) -> Any:
        """The state in which the problem with this input starts; raises `Refused` for an input that cannot be used."""
        raise NotImplementedError

    def apply(self, given: Any, state: Any, line: str) -> Any:
        """The state after a line; raises `Refused` for a line that cannot be applied. Must not change `state`."""
        raise NotImplementedError

    def violations(self, given: Any, state: Any, line: str, after: Any) -> Sequence[Broken]:
        """What is wrong with a step that can be applied."""
        return ()

    def done(self, given: Any, state: Any) -> bool:
        """Whether the problem is solved in this state."""
        return False

    def answer(self, given: Any, state: Any) -> Any:
        """The answer, in a state that is `done`. Answers are voted on: what does not matter is left out."""
        return state

    def score_answer(self, given: Any, answer: Any) -> float | None:
        """How right an answer is, 0 to 1, without a trace; None where only a trace tells."""
        return None

    def choices(self, given: Any, state: Any) -> Sequence[str] | None:
        """Every line that can be applied in this state, or None where they cannot be listed."""
        return None

    def view(self, given: Any, state: Any) -> str | None:
        """The state as a model is shown it, or None for its JSON."""
        return None

    def hint(self, given: Any, state: Any) -> str | None:
        """The line that a reference would write next, if there is one."""
        return None

    def steps_max(self, given: Any) -> int:
        """A bound on the steps of traces that end: 1 to 1,000,000."""
        return 1000

    def instance(self, given: Any) -> OwnInstance:
        """The problem with this input, for `StepEnv`, `judge` and `composite_reward`."""
        from .own_instance import OwnInstance

        return OwnInstance(self, given)


def _declared(task: Task) -> dict[str, Any]:
    told = {"name": task.name, "title": task.title, "statement": task.statement, "step": task.step}
    lists = {"actions": list(task.actions), "constraints": list(task.constraints)}
    return {key: value for key, value in {**told, **lists, "example": task.example}.items() if value}


def _beside(task: Task, given: Any, state: Any) -> dict[str, Any]:
    """What is told beside a state."""
    told = {"choices": task.choices(given, state), "view": task.view(given, state), "hint": task.hint(given, state)}
    if told["choices"] is not None:
        told["choices"] = list(told["choices"])
    return {key: value for key, value in told.items() if value is not None}


def answered(task: Task, asked: Mapping[str, Any]) -> dict[str, Any]:
    given = asked["input"]
    try:
        if "line" not in asked:
            state = task.start(given)
            return {"state": state, "steps_max": task.steps_max(given), **_beside(task, given, state)}
        after = task.apply(given, asked["state"], asked["line"])
    except Refused as refused:
        return {"refused": str(refused)}

    broken = task.violations(given, asked["state"], asked["line"], after)
    answer: dict[str, Any] = {"state": after}
    if broken:
        answer["violations"] = [
            {"name": one.name, "severity": one.severity, **({"message": one.message} if one.message else {})} for one in broken
        ]
    if task.done(given, after):
        answer.update(done=True, answer=task.answer(given, after))
        return answer
    return {**answer, **_beside(task, given, after)}


def _text(value: Any) -> str:
    # NaN and infinity are not valid JSON: fail here rather than send an unreadable line.
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _serve(role: str, hello: Mapping[str, Any], handle: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    answers = sys.stdout
    # Standard output is for answers only; anything else that the program prints goes to the log.
    sys.stdout = sys.stderr
    try:
        _exchange(role, hello, handle, answers)
    finally:
        sys.stdout = answers


def _exchange(
    role: str, hello: Mapping[str, Any], handle: Callable[[dict[str, Any]], Mapping[str, Any]], answers: TextIO
) -> None:
    def write(answer: Mapping[str, Any]) -> None:
        answers.write(_text(answer) + "\n")
        answers.flush()

    first = sys.stdin.readline()
    if not first:
        return
    asked = json.loads(first)
    if asked["prime"] != VERSION:
        sys.exit(f"this program speaks version {VERSION} of the protocol, not {asked['prime']}")
    if asked["role"] != role:
        sys.exit(f"this program is of the role {role}, but {asked['role']} is needed: correct `command`")
    write({"prime": VERSION, **hello})

    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = dict(handle(request))
            _text(answer)
        except CannotDo as error:
            answer = {"error": str(error), "retry": False}
        except Exception as error:  # a failed turn must not end the program
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        write({"id": request["id"], **answer})


def serve(task: Task) -> None:
    """Answers requests about a task on standard input, until it ends."""
    _serve("task", {"task": _declared(task)}, lambda asked: answered(task, asked))


def serve_agent(role: str, handle: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """Answers the turns of an executor, a verifier or a coordinator on standard input, until it ends.

    `handle` gets each request as a dict and returns the answer without its `id`. It raises `CannotDo` for a turn that it can
    never do; any other exception is a transient failure, and the turn is tried again.
    """
    if role not in ("executor", "verifier", "coordinator"):
        raise ValueError(f"role is {role!r}; give executor, verifier or coordinator")
    _serve(role, {}, handle)


@dataclass
class Report:
    """What `check` found. It is true if nothing is wrong."""

    task: str
    states: int = 0
    ends: int = 0
    dead_ends: int = 0
    problems: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        counts = f"{self.task}: {self.states} states, {self.ends} ends, {self.dead_ends} dead ends"
        found = "nothing is wrong" if self else f"{len(self.problems)} problems"
        return "\n".join([f"{counts}: {found}", *(f"- {problem}" for problem in self.problems)])


def _again(report: Report, task: Task, asked: Mapping[str, Any], what: str) -> dict[str, Any] | None:
    """The answer to a request, which is asked twice and as JSON."""
    try:
        before = _text(asked)
        first = _text(answered(task, json.loads(before)))
        if first != _text(answered(task, json.loads(before))):
            report.problems.append(f"{what} is answered differently the second time")
            return None
        # A task that changes what it is given depends on more than its arguments.
        given = json.loads(before)
        answered(task, given)
        if _text(given) != before:
            report.problems.append(f"{what} changes the input or the state that it is given; make a copy")
        answer: dict[str, Any] = json.loads(first)
        return answer
    except Exception as error:  # whatever the task raises is what is to be reported
        report.problems.append(f"{what} fails: {type(error).__name__}: {error}")
        return None


def check(task: Task, given: Any, *, states: int = 500, lines: Sequence[str] = (), seed: int = 0) -> Report:
    """Walks at random through the states of the problem with this input, and reports what no task may do.

    Each request is made twice, with arguments that come from JSON: the answers must be equal, and be JSON. Each of a state's
    `choices` must be applicable. A state that is not an end and has no choices is counted as a dead end, which a search leaves
    again. Where a task lists no choices, `lines` are tried in every state.
    """
    report, draw = Report(task.name or type(task).__name__), random.Random(seed)
    if not task.name or not task.statement:
        report.problems.append("`name` and `statement` must not be empty")

    start = _again(report, task, {"input": given}, "start")
    if start is None:
        return report
    if "refused" in start:
        report.problems.append(f"start refuses the input: {start['refused']}")
        return report

    waiting, seen = [start], {_text(start["state"])}
    while waiting and report.states < states and len(report.problems) < 20:
        here = waiting.pop(draw.randrange(len(waiting)))
        report.states += 1
        listed = here.get("choices")
        report.dead_ends += listed == []
        for line in listed if listed is not None else lines:
            what = f"{line!r} in {_text(here['state'])}"
            after = _again(report, task, {"input": given, "state": here["state"], "line": line}, what)
            if after is None:
                continue
            if "refused" in after:
                if listed is not None:
                    report.problems.append(f"{what} is among the choices, but refused: {after['refused']}")
                continue
            known = [one["severity"] in ("critical", "major", "minor") for one in after.get("violations", ())]
            if not all(known):
                report.problems.append(f"{what}: a severity is critical, major or minor")
            if after.get("done"):
                report.ends += not known
            elif not known and _text(after["state"]) not in seen:
                seen.add(_text(after["state"]))
                waiting.append(after)
    if not waiting and report.ends == 0 and not report.problems:
        report.problems.append("no state that can be reached is an end: no run of this input is ever solved")
    return report
