"""Rewards for TRL's GRPOTrainer: `reward_funcs=[composite]`, or `environment_factory=PrimeEnvironment`.

Needs nothing of TRL. Rows of the training data have `prompt`, `task`, `difficulty`, `index` and `base_seed`, or `prompt`, `task`
and `input`: `rows` makes them. TRL keeps one number for a completion, so the rewards of single steps reach the log (`log_extra`),
not the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prime_bench import Dataset, Entry, composite_reward, judge
from prime_bench.dataset import instance_of

from ._episode import Episode

Completion = str | Sequence[dict[str, Any]]

COLUMNS = ("task", "difficulty", "index", "base_seed", "input")
"""What names an instance: the first four, or `task` and `input` of a registered task."""


def rows(dataset: Dataset | Sequence[Entry], *, conversational: bool = True) -> list[dict[str, Any]]:
    """Rows for `datasets.Dataset.from_list`. For `environment_factory`, give a data set with `style="turns"`."""
    made = []
    for entry in dataset:
        columns = {name: entry["metadata"][name] for name in COLUMNS if name in entry["metadata"]}
        prompt = [{"role": "user", "content": entry["question"]}] if conversational else entry["question"]
        made.append({"prompt": prompt, **columns})
    return made


def _text(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else None
    return content if isinstance(content, str) else ""


def _pairs(completions: Sequence[Completion], columns: Mapping[str, Sequence[Any]]) -> list[tuple[str, Any]]:
    named = [name for name in COLUMNS if name in columns]
    rows = [{name: columns[name][place] for name in named} for place in range(len(completions))]
    return [(_text(completion), instance_of(row)) for completion, row in zip(completions, rows, strict=True)]


def composite(
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    *,
    log_extra: Callable[[str, list[Any]], None] | None = None,
    **columns: Any,
) -> list[float]:
    """The paper's composite reward of each completion's trace."""
    rewards = [composite_reward(text, instance) for text, instance in _pairs(completions, columns)]
    if log_extra is not None:
        log_extra("step_rewards", [str(list(reward.steps)) for reward in rewards])
    return [reward.total for reward in rewards]


def correct(prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> list[float]:
    """1.0 for each completion whose answer is right."""
    pairs = _pairs(completions, columns)
    return [1.0 if judge(text, instance, kinds="format").correct else 0.0 for text, instance in pairs]


class PrimeEnvironment:
    """For `environment_factory`: the model takes the steps itself, by calling the tool `step`. Prompts have the style `turns`."""

    def __init__(self) -> None:
        self._episode: Episode | None = None

    def reset(self, prompt: Any = "", **columns: Any) -> str | None:
        """Starts the instance of a row. Returns its first state, which TRL appends to the prompt as it is, unless it is there."""
        self._episode = Episode(instance_of(columns))
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
