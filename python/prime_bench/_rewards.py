"""The paper's composite reward, as the Rust runtime computes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import _native
from ._native import Instance
from .own_instance import OwnInstance

WEIGHTS = (10.0, 1.0, 0.5, 0.1)
"""The paper's weights: α (task), β (verify), γ (efficiency), λ (format)."""


@dataclass(frozen=True)
class Reward:
    """R = α·task + β·verify + γ·efficiency + λ·format: `total` is the sum, the others are its parts without weights."""

    total: float
    task: float
    """1 if the trace has ended, the verifier found nothing wrong with its last step, and an answer beside the trace is that of
    its last state or passes the goal test, else 0. The reference answer is not consulted."""
    verify: float
    """−V of the last step: the negated sum of the weights of the constraints that it breaks."""
    efficiency: float
    """max(0, 1 − steps / T_max); T_max is `Instance.max_steps`."""
    format: float
    """Share of the lines that were actions and could be applied."""


@dataclass(frozen=True)
class TrajectoryReward(Reward):
    """The reward of a trajectory, and that of each of its lines."""

    steps: tuple[float, ...]
    """The reward of each line. They sum to `total` where no line before the last breaks a constraint; otherwise each such
    line has cost β·V more, which the paper's R, taking V of the last step alone, forgives."""


def composite_reward(
    output: str | Sequence[str],
    instance: Instance | OwnInstance,
    *,
    kinds: str | Iterable[str] | None = None,
    weights: Sequence[float] | None = None,
) -> TrajectoryReward:
    """The paper's composite reward (eq. 6) of a trajectory and of each of its lines.

    `output` is a model's text, from which the trace is taken as `judge` takes it, or the lines themselves. Lines that break a
    constraint are applied nevertheless; after the end of the trace no line can be applied. An output without a trace counts as
    one line that is not an action. An answer in the text that cannot be read, or is not that of the trace, forfeits the task's part.
    `kinds` are the kinds of constraints that count, by default those that do not compare with the
    algorithm's own step: format, invariant, terminal. `StepEnv` gives the same numbers, step by step.

    R has the paper's own weaknesses: a short trace that stops before its end earns up to γ + λ. Where that matters, set the
    weight of efficiency to 0.

    Raises ValueError for weights that are not four finite numbers, and for unknown kinds.
    """
    if isinstance(instance, OwnInstance):
        from . import own_judging

        own, of_lines = own_judging.reward(output, instance, kinds, weights)
        return TrajectoryReward(*own, steps=tuple(of_lines))
    parts, steps = _native._composite_reward(output, instance, kinds, weights)
    return TrajectoryReward(*parts, steps=tuple(steps))
