"""Step environments as `gymnasium.Env` and `gymnasium.vector.VectorEnv`."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from prime_bench import Instance, OwnInstance, StepEnv, VectorStepEnv

OBSERVATION_MAX = 1 << 20
"""Characters of an observation, the state as JSON."""
LINE_MAX = 1 << 16


def _spaces() -> tuple[spaces.Text, spaces.Text]:
    observations = spaces.Text(OBSERVATION_MAX, min_length=0, charset=string.printable)
    return observations, spaces.Text(LINE_MAX, min_length=0, charset=string.printable)


class PrimeEnv(gymnasium.Env[str, str]):
    """One of `instances`, drawn at each reset; `rules` are the keyword arguments of `prime_bench.StepEnv`."""

    metadata = {"render_modes": ["ansi"]}

    def __init__(self, instances: Sequence[Instance | OwnInstance], *, render_mode: str | None = None, **rules: Any) -> None:
        if not instances:
            raise ValueError("instances: give at least one")
        if render_mode not in (None, "ansi"):
            raise ValueError(f"render_mode: {render_mode!r} is neither None nor 'ansi'")
        self.instances = list(instances)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces()
        self.step_env = StepEnv(self.instances[0], **rules)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        if options is None:
            options = {"instance": self.instances[int(self.np_random.integers(len(self.instances)))]}
        return self.step_env.reset(options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self.step_env.step(str(action))

    def render(self) -> str | None:  # type: ignore[override]
        return self.step_env.render() if self.render_mode == "ansi" else None


class PrimeVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """All `instances` at once. An episode that has ended starts again with the next step, whose line is not looked at
    (`AutoresetMode.NEXT_STEP`)."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def __init__(self, instances: Sequence[Instance | OwnInstance], **rules: Any) -> None:
        self.step_env = VectorStepEnv(instances, **rules)
        self.num_envs = self.step_env.num_envs
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[tuple[str, ...], dict[str, Any]]:
        super().reset(seed=seed if seed is None or isinstance(seed, int) else None)
        observations, _ = self.step_env.reset(options=options)
        self._over[:] = False
        return tuple(observations), {}

    def step(self, actions: Sequence[str]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        lines: list[str | None] = [str(line) for line in actions]
        if len(lines) != self.num_envs:
            raise ValueError(f"actions: there are {len(lines)} for {self.num_envs} environments")
        for index in np.flatnonzero(self._over):
            self.step_env.reset_at(int(index))
            lines[int(index)] = None
        observations, rewards, terminated, truncated, columns = self.step_env.step(lines)
        ends = np.array(terminated, dtype=np.bool_), np.array(truncated, dtype=np.bool_)
        judged = ~self._over
        infos: dict[str, Any] = {"score": np.array(columns["score"]), "_score": judged}
        self._over = ends[0] | ends[1]
        return tuple(observations), np.array(rewards), ends[0], ends[1], infos
