"""An environment of the Open Reward Standard (`openreward`): `Server([PrimeBench]).run()`.

The splits are the levels; a task is an instance; the model calls the tool `step` for each line, and every call has its reward.
"""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False
# The package may be missing where types are checked.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openreward.environments import Environment, JSONObject, TextBlock, ToolOutput, tool
from pydantic import BaseModel

from prime_bench.dataset import instance_of, names

from ._episode import Episode

BASE_SEED = 1000
"""The base seed of the instances; not the benchmark's."""
INSTANCES = 20
"""Number of instances of each task at each level."""


class Line(BaseModel):
    """One action line, in the form that the task describes."""

    line: str


class PrimeBench(Environment):
    """A step environment."""

    def __init__(self, task_spec: JSONObject, secrets: dict[str, str] | None = None, **_more: Any) -> None:
        super().__init__(task_spec)
        fields: dict[str, Any] = dict(task_spec)
        self.episode = Episode(instance_of(fields))

    @classmethod
    def list_splits(cls) -> Sequence[str]:
        return ["easy", "medium", "hard"]

    @classmethod
    def list_tasks(cls, split: str) -> Sequence[JSONObject]:
        if split not in cls.list_splits():
            raise ValueError(f"split: {split!r} is not one of easy, medium, hard")
        return [
            {"task": name, "difficulty": split, "index": index, "base_seed": BASE_SEED}
            for name in names()
            for index in range(INSTANCES)
        ]

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=self.episode.instructions)]

    @tool
    def step(self, params: Line) -> ToolOutput:
        """Takes one step and returns the state after it."""
        turn = self.episode.step(params.line)
        return ToolOutput(blocks=[TextBlock(text=turn.text)], reward=turn.reward, finished=turn.done)
