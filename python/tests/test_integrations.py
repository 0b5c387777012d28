"""Adapters called as their packages call them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import prime_bench
from prime_bench import Instance, StepEnv, VectorStepEnv, create_dataset
from prime_bench.integrations import trl
from prime_bench.integrations.gymnasium import PrimeEnv, PrimeVectorEnv


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_s_own_checker_passes() -> None:
    env = PrimeEnv(list(prime_bench.instances("bubble-sort", count=5)), render_mode="ansi")
    check_env(env, skip_render_check=False)
    drawn = {env.reset(seed=seed)[0] for seed in range(40)}
    assert len(drawn) == 5 and env.reset(seed=3) == env.reset(seed=3)


def test_a_vector_starts_again_by_itself() -> None:
    instances = list(prime_bench.instances("gcd-euclidean", count=3))
    envs, single = PrimeVectorEnv(instances), VectorStepEnv(instances)
    first, _ = envs.reset(seed=1)
    assert all(envs.single_observation_space.contains(observation) for observation in first)
    over = np.zeros(3, dtype=bool)
    restarted = 0
    for _ in range(40):
        lines = [line or "" for line in envs.step_env.reference()]
        observations, rewards, terminated, truncated, infos = envs.step(lines)
        assert rewards.dtype == np.float64 and not truncated.any()
        for place in np.flatnonzero(over):
            assert observations[place] == first[place] and rewards[place] == 0 and not infos["_score"][place]
            restarted += 1
        over = terminated
    assert restarted > 3 and single.num_envs == 3


def test_trl_calls_reward_functions_by_keyword() -> None:
    rows = trl.rows(create_dataset("bubble-sort", size=4, seed=5))
    assert set(rows[0]) == {"prompt", "task", "difficulty", "index", "base_seed"}
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "prompt"}
    instances = [Instance(*(columns[name][place] for name in ("task", "difficulty", "index", "base_seed"))) for place in range(4)]
    right = "<actions>\n" + "\n".join(instances[0].reference()) + "\n</actions>"
    texts = [right, "", "no trace", right]
    logged: dict = {}
    arguments = {
        "prompts": [row["prompt"] for row in rows],
        "completion_ids": [[1]] * 4,
        "trainer_state": None,
        "log_extra": logged.__setitem__,
        "log_metric": lambda name, value: None,
        **columns,
    }
    for completions in (texts, [[{"role": "assistant", "content": text}] for text in texts]):
        rewards = trl.composite(completions=completions, **arguments)
        assert rewards[0] > 10 and rewards[1] == rewards[2] == pytest.approx(-0.5) and rewards[3] < 10
        assert len(logged["step_rewards"]) == 4
        del arguments["log_extra"]
        assert trl.correct(completions=completions, **arguments) == [1.0, 0.0, 0.0, 0.0]
        arguments["log_extra"] = logged.__setitem__


def test_trl_s_environment_has_one_tool_with_a_schema() -> None:
    row = trl.rows(create_dataset("bubble-sort", size=1, seed=5))[0]
    env = trl.PrimeEnvironment()
    assert env.get_reward() == 0.0
    assert env.reset(**row).startswith("State: ")
    tools = [
        name
        for name, member in inspect.getmembers(env, inspect.ismethod)
        if not name.startswith("_") and name not in ("reset", "get_reward")
    ]
    assert tools == ["step"] and inspect.signature(env.step).parameters["line"].annotation == "str"
    assert env.get_reward() == 0.0 and "not an action line" in env.step("hello") and env.get_reward() < 0
    env.reset(**row)
    reference = StepEnv(Instance(*(row[name] for name in ("task", "difficulty", "index", "base_seed")))).instance.reference()
    answers = [env.step(line) for line in reference]
    assert answers[-1].startswith("The trace has ended. State: ") and env.step("done") == "The trace has ended."
    assert env.get_reward() > 10
