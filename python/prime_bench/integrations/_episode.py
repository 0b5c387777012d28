"""An episode as text: what a language model is told after each of its lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prime_bench import Instance, OwnInstance, StepEnv


@dataclass(frozen=True)
class Turn:
    """What came of a line."""

    text: str
    """For the model: the state after the line, what it broke, or why it was refused."""
    reward: float
    done: bool


@dataclass
class Episode:
    """A step environment for models; `rules` are the keyword arguments of `prime_bench.StepEnv`."""

    instance: Instance | OwnInstance
    rules: dict[str, Any] = field(default_factory=dict)
    rewards: list[float] = field(default_factory=list)
    """The reward of each step so far."""

    def __post_init__(self) -> None:
        self.env = StepEnv(self.instance, **self.rules)

    @property
    def opening(self) -> str:
        return "State: " + self.env.observation

    @property
    def instructions(self) -> str:
        """The task in words, for a model that takes one step a turn, with the first state."""
        return self.instance.prompt("turns")

    @property
    def done(self) -> bool:
        return self.env.done

    def step(self, line: str) -> Turn:
        """Takes a line. After the end it changes nothing and costs nothing."""
        if self.env.done:
            return Turn("The trace has ended.", 0.0, True)
        observation, reward, terminated, truncated, info = self.env.step(line)
        self.rewards.append(reward)
        done = terminated or truncated
        if info["refusal"] is not None:
            return Turn(f"{line!r}: {info['reason']}. State: {observation}", reward, done)
        broken = f"The step breaks {', '.join(info['violations'])}. " if info["violations"] else ""
        end = "The trace has ended. " if done else ""
        return Turn(f"{broken}{end}State: {observation}", reward, done)

    def total(self) -> float:
        """R of the steps taken; 0 before the first."""
        return self.env.trajectory_reward().total if self.rewards else 0.0


def action_line(text: str) -> str:
    """The action of a model's turn: the last line of its text that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
