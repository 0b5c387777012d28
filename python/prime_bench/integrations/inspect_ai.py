"""PRIME-Bench as a task of Inspect: `inspect eval prime_bench/prime_bench -T dataset=DIR -T task=bubble-sort`.

The data set is one that `prime-agents bench export` has written; without it, the same instances are made in this process. The
transcript has each step of the trace with what the verifier found.
"""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False
# The package may be missing where types are checked.
from __future__ import annotations

import json
from typing import Any

from inspect_ai import Task, task as inspect_task
from inspect_ai.dataset import Dataset, MemoryDataset, Sample, hf_dataset
from inspect_ai.log import transcript
from inspect_ai.scorer import Score, Scorer, Target, accuracy, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate
from inspect_ai.util import span

from prime_bench import Instance, composite_reward, instances, judge
from prime_bench._tasks import INSTANCES

STEPS_SHOWN = 200
"""Most steps of a trace that the transcript has."""


def _sample(task: str, name: str, prompt: str, answer: str, data: Any) -> Sample:
    metadata = {"task": task, "input": data if isinstance(data, str) else json.dumps(data)}
    return Sample(input=prompt, target=answer, id=name, metadata=metadata)


def _of_row(row: dict[str, Any]) -> Sample:
    return _sample(row["task"], row["id"], row["prompt"], row["answer"], row["input"])


def _of_instance(instance: Instance) -> Sample:
    prompt, answer = instance.prompt("structured"), json.dumps(instance.answer())
    return _sample(instance.task, str(instance.id), prompt, answer, instance.input)


async def _show(rewards: tuple[float, ...]) -> None:
    for step, reward in enumerate(rewards[:STEPS_SHOWN]):
        async with span(f"step {step}", type="step"):
            transcript().info({"step": step, "reward": reward}, source="prime-bench")


@scorer(metrics={"result": [accuracy(), stderr()], "*": [mean()]})
def prime() -> Scorer:
    """The judge's four stages, and the paper's composite reward."""

    async def score(state: TaskState, target: Target) -> Score:
        instance = Instance.from_input(state.metadata["task"], state.metadata["input"])
        output = state.output.completion
        judgement, reward = judge(output, instance), composite_reward(output, instance)
        await _show(reward.steps)
        stages = {stage: float(getattr(judgement, stage) == "passed") for stage in ("format", "syntax", "semantic", "result")}
        error = judgement.first_error
        return Score(
            value={**stages, "partial_credit": judgement.partial_credit or 0.0, "reward": reward.total},
            answer=output,
            explanation=None if error is None else f"step {error.step}: {error.line!r}: {error.type}",
            metadata={"step_rewards": list(reward.steps)},
        )

    return score


@inspect_task
def prime_bench(
    task: str = "bubble-sort", difficulty: str = "easy", dataset: str | None = None, limit: int | None = None
) -> Task:
    """One task of the benchmark at one level: all its instances, or the first `limit`."""
    samples: Dataset
    if dataset is None:
        count = INSTANCES if limit is None else limit
        samples = MemoryDataset([_of_instance(instance) for instance in instances(task, difficulty, count=count)])
    else:
        samples = hf_dataset(dataset, split=difficulty, name=task, sample_fields=_of_row, limit=limit)
    return Task(dataset=samples, solver=generate(), scorer=prime())
