"""Step environments of tasks of one's own, and the classes that stand for these and the built-in ones.

`StepEnv(instance)` makes the environment that an instance needs; both kinds are instances of `StepEnv`.
"""

from __future__ import annotations

import copy
import re
from abc import ABCMeta
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _native
from ._native import EpisodeOver
from ._rewards import Reward
from .own_instance import SEVERITIES, OwnInstance

KINDS = ("format", "invariant", "transition", "terminal")
_AROUND = re.compile(r"^(?:[-*+•>]\s+|\d{1,9}[.):]\s+)?[`\"'*]{0,3}(.*?)[`\"'*]{0,3}$")


def kinds_of(kinds: str | Iterable[str] | None, default: Sequence[str] = KINDS) -> list[str]:
    """The kinds of constraints in an argument, in order."""
    given = [kinds] if isinstance(kinds, str) else list(default if kinds is None else kinds)
    for kind in given:
        if kind not in KINDS:
            raise ValueError(f"kinds: {kind!r} is not one of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in given]


class _Either(ABCMeta):
    def __call__(cls, *args: Any, **named: Any) -> Any:
        either: Any
        if cls is StepEnv:
            own = isinstance(args[0] if args else named.get("instance"), OwnInstance)
            either = OwnStepEnv if own else _native.StepEnv
            return either(*args, **named)
        if cls is VectorStepEnv:
            given = args[0] if args else named.pop("instances", ())
            given = given if isinstance(given, str) else list(given)
            own = any(isinstance(one, OwnInstance) for one in given)
            either = OwnVectorStepEnv if own else _native.VectorStepEnv
            return either(given, *args[1:], **named)
        return super().__call__(*args, **named)


class StepEnv(metaclass=_Either):
    __doc__ = _native.StepEnv.__doc__


class VectorStepEnv(metaclass=_Either):
    __doc__ = _native.VectorStepEnv.__doc__


StepEnv.register(_native.StepEnv)
VectorStepEnv.register(_native.VectorStepEnv)


class OwnStepEnv(StepEnv):
    """An instance of a task of one's own as an environment; it behaves as that of a built-in task does."""

    def __init__(
        self,
        instance: OwnInstance,
        *,
        kinds: str | Iterable[str] | None = None,
        weights: Iterable[float] | None = None,
        max_steps: int | None = None,
        reject_violations: bool = False,
    ) -> None:
        self.kinds = kinds_of(kinds, ("format", "invariant", "terminal"))
        self._weights = None if weights is None else tuple(weights)
        self._most = max_steps
        if max_steps is not None and (not isinstance(max_steps, int) or max_steps < 1):
            raise ValueError(f"max_steps: {max_steps!r} is not a positive integer")
        self._rejects = reject_violations
        self._begin(instance)

    def _begin(self, instance: OwnInstance) -> None:
        self.instance = instance
        self._here = instance.first
        self.lines: list[str] = []
        self.terminated = self.truncated = False
        self._rewards = _native._StepRewards(self._weights, instance.max_steps)
        self._judged: list[tuple[bool, bool, int, bool, bool]] = []
        #: Of each constraint that was broken.
        self.severities: dict[str, str] = {}

    @property
    def max_steps(self) -> int:
        return self.instance.max_steps if self._most is None else self._most

    @property
    def done(self) -> bool:
        return self.terminated or self.truncated

    @property
    def observation(self) -> str:
        return OwnInstance.observation(self._here)

    @property
    def answer(self) -> Any:
        return self._here["answer"] if self.terminated else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        for key in options or {}:
            if key != "instance":
                raise ValueError(f"options: unknown key {key}: there is `instance`")
        self._begin((options or {}).get("instance", self.instance))
        return self.observation, {"task": self.instance.task, "instance": None}

    def _asked(self, line: str) -> tuple[str, dict[str, Any]]:
        """The line as it is judged: without what models put around one, if it is refused with that."""
        plain = line.strip()
        told = self.instance.ask(self._here["state"], plain)
        bare = _AROUND.sub(r"\1", plain)
        if "refused" in told and bare != plain:
            again = self.instance.ask(self._here["state"], bare)
            if "refused" not in again:
                return bare, again
        return plain, told

    def add(self, line: str, last: bool | None = None, agrees: Callable[[], bool] = lambda: True) -> float:
        """Judges a line, and applies it unless it is refused or the rules reject it; returns its reward. After the end of the
        trace every line is refused. `last` says whether the trajectory ends with it; else the rules do. `agrees` is asked at the
        end of the trace, whether that is an answer."""
        text = line.strip()
        self._is_line = bool(text) and text.isprintable()
        if self.terminated:
            told: dict[str, Any] = {"refused": "the trace has ended"}
        elif not self._is_line:
            told = {"refused": "it is not a line of text"}
        else:
            line, told = self._asked(text)

        refused = told.get("refused")
        severity_of = self.instance.severity_of
        told_of = told.get("violations", ()) if refused is None else [{"name": "format", "severity": "critical"}]
        named = [(one["name"], one.get("severity") or severity_of(one["name"])) for one in told_of]
        found = [(name, severity) for name, severity in named if self.instance.kind_of(name) in self.kinds]
        self.severities.update(found)
        tenths = sum(SEVERITIES[severity] for _, severity in found)

        committed = refused is None and not (self._rejects and tenths)
        answered = False
        if committed:
            self._here = told
            self.lines.append(line)
            self.terminated = bool(told.get("done"))
            answered = self.terminated and agrees()
        self.truncated = not self.terminated and self._rewards.proposals + 1 >= self.max_steps
        judged = (refused is None, committed, tenths, answered, self.done if last is None else last)
        self._judged.append(judged)
        self._rewards, parts = self._rewards.after(judged)
        self._broken, self._refused = [name for name, _ in found], refused
        return parts[0]

    def step(self, line: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if not isinstance(line, str):
            raise TypeError(f"line: expected a str, not {type(line).__name__}")
        if self.done:
            raise EpisodeOver("the episode has ended: call reset()")

        reward = self.add(line)
        refusal = "illegal" if self._is_line else "unparsable"
        info: dict[str, Any] = {
            "score": self._judged[-1][2] / 10,
            "violations": self._broken,
            "refusal": None if self._refused is None else refusal,
            "reason": self._refused,
            "steps": self._rewards.steps,
        }
        if self.terminated:
            info["answer"] = self.answer
        return self.observation, reward, self.terminated, self.truncated, info

    def parts(self) -> tuple[float, float, float, float, float]:
        """R of the lines so far, and its parts."""
        return self._rewards.trajectory()

    def correct(self) -> bool:
        """Whether the trace has ended with an answer that the task accepts; that of a task that cannot score answers is as
        right as its trace is clean."""
        if not self.terminated:
            return False
        try:
            return self.instance.accepts(self.answer)
        except ValueError:
            return not any(tenths for _, committed, tenths, _, _ in self._judged if committed)

    def reference(self) -> str | None:
        return None if self.terminated else self._here.get("hint")

    def choices(self) -> list[str] | None:
        return None if self.terminated else self._here.get("choices")

    def trajectory_reward(self) -> Reward:
        return Reward(*self.parts())

    def fork(self) -> OwnStepEnv:
        other = copy.copy(self)
        other.lines, other._judged, other.severities = list(self.lines), list(self._judged), dict(self.severities)
        return other

    def __deepcopy__(self, memo: Any) -> OwnStepEnv:
        return self.fork()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_rewards"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._rewards = _native._StepRewards(self._weights, self.instance.max_steps)
        for judged in self._judged:
            self._rewards, _ = self._rewards.after(judged)

    def render(self) -> str:
        return self.observation

    def close(self) -> None:
        """Nothing is held that would have to be closed."""

    def __repr__(self) -> str:
        return f"<OwnStepEnv {self.instance.task}, {len(self._judged)} lines>"


def _env(instance: Any, rules: dict[str, Any]) -> Any:
    either: Any = StepEnv
    return either(instance, **rules)


class OwnVectorStepEnv(VectorStepEnv):
    """Instances as environments that are stepped together, in turn; those of built-in tasks may be among them."""

    def __init__(self, instances: Iterable[Any], *, threads: int = 0, **rules: Any) -> None:
        self._rules = rules
        self._envs = [_env(instance, rules) for instance in instances]
        self._ends = [(False, False)] * len(self._envs)

    @property
    def num_envs(self) -> int:
        return len(self._envs)

    def __len__(self) -> int:
        return len(self._envs)

    @property
    def instances(self) -> list[Any]:
        return [env.instance for env in self._envs]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[str], dict[str, Any]]:
        for key in options or {}:
            if key != "instances":
                raise ValueError(f"options: unknown key {key}: there is `instances`")
        others = list((options or {}).get("instances", self.instances))
        if len(others) != len(self._envs):
            raise ValueError(f"options: there are {len(others)} instances for {len(self._envs)} environments")
        self._envs = [_env(instance, self._rules) for instance in others]
        self._ends = [(False, False)] * len(self._envs)
        return [env.observation for env in self._envs], {}

    def reset_at(self, index: int, instance: Any = None) -> str:
        if not 0 <= index < len(self._envs):
            raise ValueError(f"index: {index} is not between 0 and {len(self._envs) - 1}")
        self._envs[index] = _env(instance or self._envs[index].instance, self._rules)
        self._ends[index] = (False, False)
        return str(self._envs[index].observation)

    def step(
        self, lines: Sequence[str | None]
    ) -> tuple[list[str], list[float], list[bool], list[bool], dict[str, list[Any]]]:
        if isinstance(lines, str) or len(lines) != len(self._envs):
            raise ValueError(f"lines: give a sequence of {len(self._envs)}, one for each environment")
        for place, (env, line) in enumerate(zip(self._envs, lines, strict=True)):
            if line is not None and env.done:
                raise EpisodeOver(f"lines[{place}]: the episode has ended: give None, or call reset_at")
        rewards: list[float] = []
        infos: dict[str, list[Any]] = {"score": [], "refusal": []}
        for place, (env, line) in enumerate(zip(self._envs, lines, strict=True)):
            reward, info = 0.0, {"score": 0.0, "refusal": None}
            if line is not None:
                _, reward, terminated, truncated, info = env.step(line)
                self._ends[place] = (terminated, truncated)
            rewards.append(reward)
            for name, column in infos.items():
                column.append(info[name])
        observations = [env.observation for env in self._envs]
        return observations, rewards, [end[0] for end in self._ends], [end[1] for end in self._ends], infos

    def reference(self) -> list[str | None]:
        return [None if env.done else env.reference() for env in self._envs]

    def close(self) -> None:
        """Nothing is held that would have to be closed."""
