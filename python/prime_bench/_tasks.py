"""What is known about tasks: their pages, instances, levels, and the paper's curriculum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import _native
from ._native import Instance

INSTANCES = 200
"""Instances per level in the benchmark."""

BASE_SEED = 42
"""Base seed of the benchmark. Any other gives a fresh, identically distributed one."""


@dataclass(frozen=True)
class Action:
    """One form of an action line."""

    line: str
    """The form with placeholders: `cmp <i> <j>`."""
    effect: str
    example: str


@dataclass(frozen=True)
class Constraint:
    """What a verifier checks of every step."""

    name: str
    kind: str
    """format, invariant, transition or terminal."""
    severity: str
    """critical, major or minor: weights 1.0, 0.6 and 0.2 in V."""
    meaning: str


@dataclass(frozen=True)
class TaskInfo:
    """A task's page."""

    id: int
    slug: str
    title: str
    category: str
    levels: dict[str, str]
    """Size parameters in words, by level: easy, medium, hard."""
    problem: str
    """What is asked, without the algorithm."""
    algorithm: str
    step: str
    """What one step of the trace is."""
    actions: tuple[Action, ...]
    constraints: tuple[Constraint, ...]
    input: dict[str, str]
    """Field and meaning; so are `answer` and `state`."""
    answer: dict[str, str]
    state: dict[str, str]
    hidden: tuple[str, ...]
    """Input fields that an executor must not see."""
    example: dict[str, Any]
    """A small worked instance: input, answer, steps, and the first and last actions."""
    paper: dict[str, float]
    """The paper's figures: stated steps; accuracy in per cent without and with PRIME."""

    def grammar(self, form: str = "gbnf") -> str:
        """The grammar of one action line: see `prime_bench.grammar`."""
        return _native.grammar(self.slug, form)


def _info(slug: str) -> TaskInfo:
    page = _native._page(slug)
    actions = (Action(action["line"], action["effect"], action["example"]) for action in page.pop("actions"))
    constraints = (Constraint(**constraint) for constraint in page.pop("constraints"))
    hidden = tuple(page.pop("hidden"))
    return TaskInfo(actions=tuple(actions), constraints=tuple(constraints), hidden=hidden, **page)


def tasks(category: str | None = None) -> list[TaskInfo]:
    """All 86 tasks, or those of a category, in the order of the benchmark.

    Raises ValueError for an unknown category.
    """
    return [_info(slug) for slug in _native._slugs(category)]


def task(slug: str) -> TaskInfo:
    """The task of a slug, such as `bubble-sort`.

    Raises KeyError with the nearest name for an unknown one.
    """
    return _info(slug)


def instances(
    task: str, difficulty: str = "easy", base_seed: int = BASE_SEED, start: int = 0, count: int = INSTANCES
) -> Iterator[Instance]:
    """Instances `start`, `start + 1`, … of a level, `count` of them; the benchmark's own by default.

    For training, take another base seed. A base seed has 1,000 instances of each level.

    Raises KeyError for an unknown task, ValueError for other values out of range, both at once.
    """
    for field, value in (("start", start), ("count", count)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{field}: expected an int, not {type(value).__name__}")
        if value < 0:
            raise ValueError(f"{field}: {value} is negative")
    if count == 0:
        Instance(task, difficulty, 0, base_seed)
        return iter(())
    Instance(task, difficulty, start, base_seed), Instance(task, difficulty, start + count - 1, base_seed)
    return (Instance(task, difficulty, index, base_seed) for index in range(start, start + count))


@dataclass(frozen=True)
class Phase:
    """Some epochs of training, with the levels that they draw from."""

    name: str
    first_epoch: int
    last_epoch: int
    difficulties: tuple[str, ...]


def curriculum() -> tuple[Phase, ...]:
    """The phases of the paper's training curriculum: all tasks, at levels that grow harder."""
    return tuple(Phase(name, first, last, tuple(levels)) for name, first, last, levels in _native._phases())
