"""Tasks as procedural data sets, in reasoning-gym's form: question, answer, metadata; `score_answer`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypedDict

from . import _native
from ._judging import judge
from ._native import Instance

Entry = TypedDict("Entry", {"question": str, "answer": str, "metadata": dict[str, Any]})

_CHUNK = 1_000
"""Instances of a base seed that differ."""
_CHUNKS = 1_024
_SEED_MAX = 2**32
_FIRST_BASE_SEED = 2**43
"""Far from the benchmark's 42 and from all that people type."""


def _integer(field: str, value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{field}: expected an int, not {type(value).__name__}")
    if not least <= value <= most:
        raise ValueError(f"{field}: {value} is not between {least} and {most}")
    return value


class Dataset(Sequence[Entry]):
    """`size` instances of a task. Nothing is stored: an entry is computed when it is asked for."""

    def __init__(
        self,
        name: str,
        size: int = 500,
        seed: int | None = None,
        *,
        difficulty: str | Sequence[str] = "easy",
        style: str = "structured",
        base_seed: int | None = None,
    ) -> None:
        self.name = name
        self.size = _integer("size", size, 0, _CHUNK if base_seed is not None else _CHUNK * _CHUNKS)
        if seed is not None and base_seed is not None:
            raise ValueError("base_seed: give seed or base_seed, not both")
        drawn = random.SystemRandom().randrange(_SEED_MAX) if seed is None else seed
        self.seed = _integer("seed", drawn, 0, _SEED_MAX)
        self.base_seed = base_seed
        self.difficulties = (difficulty,) if isinstance(difficulty, str) else tuple(difficulty)
        if not self.difficulties:
            raise ValueError("difficulty: name at least one of easy, medium, hard")
        self.style = style
        for level in self.difficulties:
            Instance(name, level, 0, 0 if base_seed is None else base_seed).prompt(style)

    def instance(self, index: int) -> Instance:
        """The instance of an entry."""
        level = self.difficulties[index % len(self.difficulties)]
        if self.base_seed is not None:
            return Instance(self.name, level, index, self.base_seed)
        chunk, place = divmod(index, _CHUNK)
        return Instance(self.name, level, place, _FIRST_BASE_SEED + self.seed * _CHUNKS + chunk)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Entry:  # type: ignore[override]
        if not isinstance(index, int):
            raise TypeError(f"index: expected an int, not {type(index).__name__}")
        if index < 0:
            index += self.size
        if not 0 <= index < self.size:
            raise IndexError(f"index: the data set has {self.size} entries")
        instance = self.instance(index)
        return {
            "question": instance.prompt(self.style),
            "answer": instance._answer_text(),
            "metadata": {
                "source_dataset": self.name,
                "source_index": index,
                "task": self.name,
                "difficulty": instance.difficulty,
                "index": instance.index,
                "base_seed": instance.base_seed,
            },
        }

    def __iter__(self) -> Iterator[Entry]:
        return (self[index] for index in range(self.size))

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """See `prime_bench.score_answer`."""
        return score_answer(answer, entry)


def create_dataset(name: str, size: int = 500, seed: int | None = None, **config: Any) -> Dataset:
    """A task as a data set of `size` entries.

    `config`: `difficulty`, a level or several taken in turn (so a phase of the curriculum); `style`, that of the prompts.
    The same seed gives the same entries; without one, it is drawn. No seed gives an instance of the benchmark, so nothing
    trained on these entries has seen it. `base_seed=42` instead of `seed` does: for evaluation.

    Raises KeyError with the nearest name for an unknown task, ValueError with the field for other values.
    """
    return Dataset(name, size, seed, **config)


@lru_cache(maxsize=1024)
def _instance(task: str, difficulty: str, index: int, base_seed: int) -> Instance:
    return Instance(task, difficulty, index, base_seed)


def instance_of(entry: Mapping[str, Any]) -> Instance:
    """The instance of an entry of a data set, or of any mapping with its metadata."""
    metadata = entry.get("metadata", entry)
    try:
        name = (metadata["task"], metadata["difficulty"], metadata["index"], metadata["base_seed"])
    except (KeyError, TypeError) as error:
        raise ValueError("entry: its metadata must have task, difficulty, index and base_seed") from error
    return _instance(*name)


def score_answer(answer: str | None, entry: Mapping[str, Any]) -> float:
    """1.0 if the answer is right, 0.0 if not.

    `answer` is a model's whole output or the bare JSON object. Every right answer counts where a task has several. For graded
    scores see `judge` and `composite_reward`.
    """
    instance = instance_of(entry)
    return 1.0 if answer is not None and judge(answer, instance, kinds="format").correct else 0.0


def names() -> list[str]:
    """The names that `create_dataset` knows: the slugs of all tasks."""
    return list(_native._slugs())
