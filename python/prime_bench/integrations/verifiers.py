"""A taskset of verifiers (0.4): `PrimeTaskset`, whose tasks score a whole trace by the paper's composite reward."""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False
# The package may be missing where types are checked.
from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf

from prime_bench import Instance, OwnInstance, composite_reward, judge
from prime_bench.dataset import create_dataset, instance_of

__all__ = ["PrimeTaskset"]


class PrimeData(vf.TaskData):
    """A task's data: the prompt, and what names the instance."""

    task: str
    difficulty: str = "easy"
    index: int = 0
    base_seed: int = 42
    input: str | None = None
    """The input, as JSON, for a task that is registered (`prime_bench.register`)."""


class PrimeTask(vf.Task[PrimeData]):
    """An instance, to be solved in one answer."""

    def instance(self) -> Instance | OwnInstance:
        data = self.data
        fields = ("task", "difficulty", "index", "base_seed", "input")
        found: Instance | OwnInstance = instance_of({field: getattr(data, field) for field in fields})
        return found

    @vf.reward
    async def prime(self, trace: vf.Trace) -> float:
        """R of the trace. The rewards of its steps are in `trace.info["step_rewards"]`."""
        reward = composite_reward(trace.last_reply, self.instance())
        trace.info["step_rewards"] = list(reward.steps)
        return reward.total

    @vf.metric
    async def correct(self, trace: vf.Trace) -> float:
        """1 if the answer is right."""
        return float(judge(trace.last_reply, self.instance(), kinds="format").correct)


class PrimeConfig(vf.TasksetConfig):
    """Which tasks, at which level, how many instances of each, drawn by which seed."""

    tasks: list[str] = ["bubble-sort"]
    difficulty: str = "easy"
    size: int = 100
    seed: int = 0
    style: str = "structured"
    benchmark_inputs: bool = False


class PrimeTaskset(vf.Taskset[PrimeTask, PrimeConfig]):
    """The tasks of a configuration; unless `benchmark_inputs` allows it, none has an input that the benchmark has."""

    def load(self) -> Iterator[PrimeTask]:
        config = self.config
        for name in config.tasks:
            entries = create_dataset(
                name,
                config.size,
                config.seed,
                difficulty=config.difficulty,
                style=config.style,
                benchmark_inputs=config.benchmark_inputs,
            )
            for entry in entries:
                metadata = entry["metadata"]
                data = {field: metadata[field] for field in ("task", "difficulty", "index", "base_seed")}
                # The taskset numbers them as it is iterated.
                yield PrimeTask(PrimeData(idx=0, prompt=entry["question"], **data), config.task)
