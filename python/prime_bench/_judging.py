"""The judge of outputs, in the paper's four stages: format, syntax, semantics, result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native, own_judging
from ._native import Instance
from .own_instance import OwnInstance

Output = str | Mapping[str, Any]
"""A model's text, or a dict of `actions` (lines) and `answer` (a dict), either of which may be missing."""


@dataclass(frozen=True)
class FirstError:
    """Where a trace first goes wrong."""

    step: int
    """Lines before it."""
    percentile: float
    """`step` in per cent of the reference trace, at most 100."""
    type: str
    """One of the paper's nine types: carryover, reset, index, wrong-operation, ordering, termination, boundary, invariant,
    format."""
    line: str | None
    """The wrong line; None where one is missing."""
    expected: str | None
    """What the algorithm prescribes there, if anything."""
    violations: tuple[str, ...]
    """Constraints that the line breaks."""


@dataclass(frozen=True)
class Violation:
    """How often a constraint was broken."""

    constraint: str
    severity: str
    times: int


@dataclass(frozen=True)
class Judgement:
    """The judgement of one output. A stage is passed, failed or not-judged."""

    id: str
    """The instance's; the task's slug for an input of your own."""
    format: str
    """An answer could be taken out of the output."""
    syntax: str
    """The answer has the task's fields, and every line is an action."""
    semantic: str
    """Every step satisfies the constraints, and the trace ends."""
    result: str
    """The answer is right."""
    steps: int | None
    """Lines of the trace."""
    reference_steps: int
    partial_credit: float | None
    """Share of reference states that the trace reaches at the same step, 0 to 1."""
    efficiency: float | None
    """Steps over reference steps."""
    first_error: FirstError | None
    violations: tuple[Violation, ...]
    faithful: bool | None
    """For sorts: whether the answer is a permutation of the input."""

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.result == "passed"

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Judgement:
        error = fields["first_error"]
        if error is not None:
            fields["first_error"] = FirstError(**{**error, "violations": tuple(error["violations"])})
        fields["violations"] = tuple(Violation(**violation) for violation in fields["violations"])
        return cls(**fields)


def judge(output: Output, instance: Instance | OwnInstance, *, kinds: str | Iterable[str] | None = None) -> Judgement:
    """Judges an output, as `prime-agents bench check` does.

    Actions are read from `<actions>`, the answer from `<answer>`, as the prompts ask; without these tags from the last fenced
    blocks. `kinds` are the kinds of constraints that count, by default all. The result of a task of your own is what its
    `score_answer` says, else what its hints lead to, else that of a clean trace.
    """
    if isinstance(instance, OwnInstance):
        return Judgement._of(own_judging.judged(output, instance, kinds))
    return Judgement._of(_native._judge(output, instance, kinds))


def judge_many(
    outputs: Sequence[Output],
    instances: Sequence[Instance | OwnInstance],
    *,
    kinds: str | Iterable[str] | None = None,
    threads: int = 0,
) -> list[Judgement]:
    """Judges `outputs[i]` for `instances[i]`, on several threads without the interpreter's lock (0: the machine's cores).

    Raises ValueError where the two differ in length.
    """
    if any(isinstance(instance, OwnInstance) for instance in instances):
        if len(outputs) != len(instances):
            raise ValueError(f"instances: there are {len(instances)} for {len(outputs)} outputs")
        return [judge(output, instance, kinds=kinds) for output, instance in zip(outputs, instances, strict=True)]
    return [Judgement._of(fields) for fields in _native._judge_many(outputs, instances, kinds, threads)]
