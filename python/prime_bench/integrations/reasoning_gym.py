"""The tasks as data sets of reasoning-gym: `register()`, then `reasoning_gym.create_dataset("prime_bubble_sort", …)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.factory import DATASETS, register_dataset

from prime_bench.dataset import create_dataset, names, score_answer


@dataclass
class PrimeConfig:
    """Configuration of a task: `difficulty` is easy, medium or hard, `style` that of the prompts; `benchmark_inputs` as in
    `prime_bench.create_dataset`."""

    seed: int | None = None
    size: int = 500
    difficulty: str = "easy"
    style: str = "structured"
    benchmark_inputs: bool = False

    def validate(self) -> None:
        if self.size < 1:
            raise ValueError(f"size: {self.size} is not positive")


class PrimeDataset(ProceduralDataset):  # type: ignore[misc]  # it has no types
    """A task as a procedural data set. Subclasses, one for each task, say which."""

    slug: str
    name: str

    def __init__(self, config: PrimeConfig) -> None:
        super().__init__(config=config, seed=config.seed, size=config.size)
        self.entries = create_dataset(
            self.slug,
            config.size,
            self.seed,
            difficulty=config.difficulty,
            style=config.style,
            benchmark_inputs=config.benchmark_inputs,
        )

    @property
    def category(self) -> str:
        return "prime_bench"

    def __getitem__(self, idx: int) -> dict[str, Any]:
        entry = self.entries[idx]
        return {**entry, "metadata": {**entry["metadata"], "source_dataset": self.name}}

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        return score_answer(answer, entry)


def register() -> list[str]:
    """Registers all tasks as `prime_<slug with underscores>` and returns these names. Safe to call again."""
    registered = []
    for slug in names():
        name = "prime_" + slug.replace("-", "_")
        registered.append(name)
        if name not in DATASETS:
            register_dataset(name, type(name, (PrimeDataset,), {"slug": slug, "name": name}), PrimeConfig)
    return registered
