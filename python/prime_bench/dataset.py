"""Tasks as procedural data sets, in reasoning-gym's form: question, answer, metadata; `score_answer`."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, overload

from . import _native, own_judging
from ._native import Instance
from .own_instance import OwnInstance, register, registered
from .own_task import Task

Entry = TypedDict("Entry", {"question": str, "answer": str, "metadata": dict[str, Any]})

_SIZES = (1_000, 1_000 * 1_024)
"""Most entries with a base seed, and with a seed."""
_SEED_MAX = 2**32
_BATCH = 256
"""Entries drawn at once where all are asked for, one after the other."""


def _integer(field: str, value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{field}: expected an int, not {type(value).__name__}")
    if not least <= value <= most:
        raise ValueError(f"{field}: {value} is not between {least} and {most}")
    return value


class Dataset(Sequence[Entry]):
    """`size` instances of a task. Nothing is stored: an entry is computed when it is asked for, a slice of them on all cores
    without the interpreter's lock."""

    def __init__(
        self,
        name: str,
        size: int = 500,
        seed: int | None = None,
        *,
        difficulty: str | Sequence[str] = "easy",
        style: str = "structured",
        base_seed: int | None = None,
        benchmark_inputs: bool = False,
    ) -> None:
        self.name = name
        self.size = _integer("size", size, 0, _SIZES[0] if base_seed is not None else _SIZES[1])
        if seed is not None and base_seed is not None:
            raise ValueError("base_seed: give seed or base_seed, not both")
        drawn = random.SystemRandom().randrange(_SEED_MAX) if seed is None else seed
        self.seed = _integer("seed", drawn, 0, _SEED_MAX)
        self.base_seed = base_seed
        self.difficulties = (difficulty,) if isinstance(difficulty, str) else tuple(difficulty)
        self.style = style
        self.benchmark_inputs = benchmark_inputs
        self._source = self._drawn_from()

    def _drawn_from(self) -> _native._Source:
        return _native._Source(
            self.name, self.difficulties, self.seed, self.base_seed, self.style, self.benchmark_inputs
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_source"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__dict__.setdefault("benchmark_inputs", True)  # pickles of versions that drew them too
        self._source = self._drawn_from()

    def instance(self, index: int) -> Instance:
        """The instance of an entry."""
        return self._source.instance(index)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return self._source.entries(*index.indices(self.size), 0)
        if not isinstance(index, int):
            raise TypeError(f"index: expected an int or a slice, not {type(index).__name__}")
        if index < 0:
            index += self.size
        if not 0 <= index < self.size:
            raise IndexError(f"index: the data set has {self.size} entries")
        (entry,) = self._source.entries(index, index + 1, 1, 1)
        return entry

    def __iter__(self) -> Iterator[Entry]:
        for start in range(0, self.size, _BATCH):
            yield from self[start : start + _BATCH]

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """See `prime_bench.score_answer`."""
        return score_answer(answer, entry)

    def score_answers(
        self, answers: Sequence[str | None], entries: Sequence[Mapping[str, Any]], *, threads: int = 0
    ) -> list[float]:
        """See `prime_bench.score_answers`."""
        return score_answers(answers, entries, threads=threads)


def create_dataset(name: str, size: int = 500, seed: int | None = None, **config: Any) -> Dataset:
    """A task as a data set of `size` entries.

    `config`: `difficulty`, a level or several taken in turn (so a phase of the curriculum); `style`, that of the prompts.
    The same seed gives the same entries; without one, it is drawn. No entry has an input that the benchmark has, so nothing
    trained on these entries has seen it; `benchmark_inputs=True` allows them, which tower-of-hanoi needs: of its inputs the
    benchmark leaves too few. `base_seed=42` instead of `seed` gives the benchmark, for evaluation; with `base_seed`, nothing is
    left out.

    Raises KeyError with the nearest name for an unknown task, ValueError with the field for other values, and where the
    benchmark has nearly all inputs of a level.
    """
    return Dataset(name, size, seed, **config)


def _own(metadata: Any) -> OwnInstance | None:
    task = metadata.get("task") if isinstance(metadata, Mapping) else None
    if not isinstance(task, str) or metadata.get("input") is None:
        return None
    found = registered(task)
    if found is None:
        return None
    given = metadata["input"]
    return OwnInstance(found, json.loads(given) if isinstance(given, str) else given)


def own_entries(task: Task, inputs: Iterable[Any], *, style: str = "structured") -> list[Entry]:
    """Problems of a task of your own as entries of a data set, as `create_dataset` makes them. Registers the task, so that
    `score_answer` and the adapters of trainers find it: in every process that reads the entries, call `register`.
    """
    register(task)
    made = []
    for given in inputs:
        instance = OwnInstance(task, given)
        text = json.dumps(instance.input, ensure_ascii=False)
        made.append(Entry(question=instance.prompt(style), answer="", metadata={"task": task.name, "input": text}))
    return made


def instance_of(entry: Mapping[str, Any]) -> Any:
    """The instance of an entry of a data set, or of any mapping with its metadata: `task`, `difficulty`, `index` and `base_seed`,
    or, of a task that is registered, `task` and `input`."""
    metadata = entry.get("metadata", entry)
    own = _own(metadata)
    if own is not None:
        return own
    try:
        name = (metadata["task"], metadata["difficulty"], metadata["index"], metadata["base_seed"])
    except (KeyError, TypeError) as error:
        raise ValueError("entry: its metadata must have task, difficulty, index and base_seed") from error
    return _native._instance(*name)


def score_answer(answer: str | None, entry: Mapping[str, Any]) -> float:
    """1.0 if the answer is right, 0.0 if not.

    `answer` is a model's whole output or the bare JSON object. Every right answer counts where a task has several. A task of your
    own gives 0 to 1 (`Task.score_answer`). For graded scores see `judge` and `composite_reward`.
    """
    own = _own(entry.get("metadata", entry))
    return own_judging.score(answer, own) if own is not None else _native._scores([answer], [entry], 1)[0]


def score_answers(
    answers: Sequence[str | None], entries: Sequence[Mapping[str, Any]], *, threads: int = 0
) -> list[float]:
    """`score_answer` of `answers[i]` for `entries[i]`, on several threads without the interpreter's lock (0: the machine's
    cores).

    Raises ValueError where the two differ in length.
    """
    if any(_own(entry.get("metadata", entry)) is not None for entry in entries):
        if len(answers) != len(entries):
            raise ValueError(f"entries: there are {len(entries)} for {len(answers)} answers")
        return [score_answer(answer, entry) for answer, entry in zip(answers, entries, strict=True)]
    return _native._scores(answers, entries, threads)


def names() -> list[str]:
    """The names that `create_dataset` knows: the slugs of all tasks."""
    return list(_native._slugs())
