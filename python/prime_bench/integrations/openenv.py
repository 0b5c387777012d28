"""An OpenEnv server of step environments: `uvicorn prime_bench.integrations.openenv:app`.

A client resets with `task`, `difficulty`, `index` and `base_seed`, or with `task` and `input` of a registered task. It
steps with `{"line": …}`; every step has its reward.
"""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False
# The package may be missing where types are checked.
from __future__ import annotations

from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from prime_bench import EpisodeOver, StepEnv
from prime_bench.dataset import instance_of

SESSIONS_MAX = 1000
"""Environments at once, one for each connection."""


class PrimeAction(Action):
    """One action line."""

    line: str


class PrimeObservation(Observation):
    """The state after a step, and what the verifier found."""

    state: str
    """JSON text."""
    prompt: str = ""
    """The task in words; only after a reset."""
    score: float = 0.0
    """V of the step: the sum of the weights of what it breaks."""
    violations: list[str] = []
    refusal: str | None = None
    """Why the line could not be applied."""


class PrimeEnvironment(Environment[PrimeAction, PrimeObservation, State]):
    """A step environment."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._env: StepEnv | None = None
        self._state = State(step_count=0)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str = "bubble-sort",
        difficulty: str = "easy",
        index: int = 0,
        base_seed: int = 1000,
        style: str = "turns",
        input: Any = None,
        **_more: Any,
    ) -> PrimeObservation:
        base_seed = base_seed if seed is None else seed
        row = {"task": task, "difficulty": difficulty, "index": index, "base_seed": base_seed, "input": input}
        instance = instance_of(row)
        self._env = StepEnv(instance)
        self._state = State(episode_id=episode_id, step_count=0)
        return PrimeObservation(state=self._env.observation, prompt=instance.prompt(style), reward=None, done=False)

    def step(self, action: PrimeAction, timeout_s: float | None = None, **_more: Any) -> PrimeObservation:
        if self._env is None:
            raise EpisodeOver("step: reset the environment first")
        state, reward, terminated, truncated, info = self._env.step(action.line)
        self._state.step_count += 1
        return PrimeObservation(
            state=state,
            reward=reward,
            done=terminated or truncated,
            score=info["score"],
            violations=list(info["violations"]),
            refusal=info.get("reason"),
        )

    @property
    def state(self) -> State:
        return self._state


app = create_fastapi_app(
    PrimeEnvironment, PrimeAction, PrimeObservation, max_concurrent_envs=SESSIONS_MAX, env_name="prime-bench"
)
