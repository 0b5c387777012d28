"""Rewards for TRL's GRPOTrainer: `reward_funcs=[composite]`, or `environment_factory=PrimeEnvironment`.

Needs nothing of TRL. Rows of the training data have `prompt`, `task`, `difficulty`, `index` and `base_seed`: `rows` makes
them. TRL keeps one number for a completion, so the rewards of single steps reach the log (`log_extra`), not the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prime_bench import Dataset, Instance, composite_reward, judge

from ._episode import Episode

Completion = str | Sequence[dict[str, Any]]


def rows(dataset: Dataset, *, conversational: bool = True) -> list[dict[str, Any]]:
    """Rows for `datasets.Dataset.from_list`. For `environment_factory`, give a data set with `style="turns"`."""
    made = []
    for entry in dataset:
        columns = {name: entry["metadata"][name] for name in ("task", "difficulty", "index", "base_seed")}
        prompt = [{"role": "user", "content": entry["question"]}] if conversational else entry["question"]
        made.append({"prompt": prompt, **columns})
    return made


def _text(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else None
    return content if isinstance(content, str) else ""


def _pairs(
    completions: Sequence[Completion],
    task: Sequence[str],
    difficulty: Sequence[str],
    index: Sequence[int],
    base_seed: Sequence[int],
) -> list[tuple[str, Instance]]:
    named = map(Instance, task, difficulty, index, base_seed)
    return [(_text(completion), instance) for completion, instance in zip(completions, named, strict=True)]


def composite(
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    *,
    task: Sequence[str],
    difficulty: Sequence[str],
    index: Sequence[int],
    base_seed: Sequence[int],
    log_extra: Callable[[str, list[Any]], None] | None = None,
    **_columns: Any,
) -> list[float]:
    """The paper's composite reward of each completion's trace."""
    pairs = _pairs(completions, task, difficulty, index, base_seed)
    rewards = [composite_reward(text, instance) for text, instance in pairs]
    if log_extra is not None:
        log_extra("step_rewards", [str(list(reward.steps)) for reward in rewards])
    return [reward.total for reward in rewards]


def correct(
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    *,
    task: Sequence[str],
    difficulty: Sequence[str],
    index: Sequence[int],
    base_seed: Sequence[int],
    **_columns: Any,
) -> list[float]:
    """1.0 for each completion whose answer is right."""
    pairs = _pairs(completions, task, difficulty, index, base_seed)
    return [1.0 if judge(text, instance, kinds="format").correct else 0.0 for text, instance in pairs]


class PrimeEnvironment:
    """For `environment_factory`: the model takes the steps itself, by calling the tool `step`. Prompts have the style `turns`."""

    def __init__(self) -> None:
        self._episode: Episode | None = None

    def reset(
        self, task: str, difficulty: str, index: int, base_seed: int, prompt: Any = "", **_columns: Any
    ) -> str | None:
        """Starts the instance of a row. Returns its first state, which TRL appends to the prompt as it is, unless it is there."""
        self._episode = Episode(Instance(task, difficulty, index, base_seed))
        opening = self._episode.opening
        return None if opening in _text(prompt) else f"\n\n{opening}"

    def step(self, line: str) -> str:
        """Takes one step and returns the state after it.

        Args:
            line: One action line, in the form that the task describes.

        Returns:
            The state after the step, or why it was refused.
        """
        if self._episode is None:
            raise ValueError("the environment was not reset")
        return self._episode.step(line).text

    def get_reward(self) -> float:
        """R of the steps taken; 0 before the first."""
        return self._episode.total() if self._episode is not None else 0.0
