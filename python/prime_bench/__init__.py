"""PRIME-Bench: 86 algorithmic tasks as step environments, with a reward for every step from a hard verifier.

    import prime_bench

    env = prime_bench.StepEnv(prime_bench.Instance("bubble-sort"))
    observation, info = env.reset()
    observation, reward, terminated, truncated, info = env.step("cmp 0 1")

Everything is computed in this process: no server, no model, no network.
"""

from typing import TYPE_CHECKING

from ._judging import FirstError, Judgement, Violation, judge, judge_many
from ._native import ASSURANCES, EpisodeOver, Instance, __version__, grammar
from ._rewards import WEIGHTS, Reward, TrajectoryReward, composite_reward
from ._tasks import Action, Constraint, Phase, TaskInfo, curriculum, instances, task, tasks
from .dataset import Dataset, Entry, create_dataset, own_entries, score_answer, score_answers
from .own_instance import OwnInstance, register
from .own_task import Broken, CannotDo, Refused, Report, Task, check, serve, serve_agent

if TYPE_CHECKING:
    from ._native import StepEnv, VectorStepEnv
else:
    from .own_env import StepEnv, VectorStepEnv

__all__ = [
    "ASSURANCES",
    "WEIGHTS",
    "Action",
    "Broken",
    "CannotDo",
    "Constraint",
    "Dataset",
    "Entry",
    "EpisodeOver",
    "FirstError",
    "Instance",
    "Judgement",
    "OwnInstance",
    "Phase",
    "Refused",
    "Report",
    "Reward",
    "StepEnv",
    "Task",
    "TaskInfo",
    "TrajectoryReward",
    "VectorStepEnv",
    "Violation",
    "__version__",
    "check",
    "composite_reward",
    "create_dataset",
    "curriculum",
    "grammar",
    "instances",
    "judge",
    "judge_many",
    "own_entries",
    "register",
    "score_answer",
    "score_answers",
    "serve",
    "serve_agent",
    "task",
    "tasks",
]
