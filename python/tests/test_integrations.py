"""Adapters called as their packages call them."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
import types

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import prime_bench
from prime_bench import Instance, StepEnv, VectorStepEnv, composite_reward, create_dataset
from prime_bench.integrations import trl, verl
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
    assert (env.reset(**row) or "").startswith("\n\nState: ")
    (turns,) = trl.rows(create_dataset("bubble-sort", size=1, seed=5, style="turns"))
    assert env.reset(**turns) is None and turns["prompt"][0]["content"].endswith(env._episode.opening + "\n")
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


def row_of(slug: str) -> dict:
    return create_dataset(slug, size=1, seed=5)[0]["metadata"]


def right_output(instance: Instance) -> str:
    return "<actions>\n" + "\n".join(instance.reference()) + "\n</actions>"


def test_verl_calls_the_reward_function_by_keyword() -> None:
    row = row_of("bubble-sort")
    label = {name: row[name] for name in ("task", "difficulty", "index", "base_seed")}
    instance = Instance(*label.values())
    # As verl's reward managers do.
    asked = {"data_source": "prime-bench", "ground_truth": json.dumps(label), "extra_info": label}
    for text, right in ((right_output(instance), 1.0), ("no trace", 0.0)):
        found = verl.compute_score(solution_str=text, **asked, reward_router_address=None)
        assert found["score"] == composite_reward(text, instance).total and found["acc"] == right
        assert json.loads(found["step_rewards"]) == list(composite_reward(text, instance).steps)
    only_task = verl.compute_score(solution_str="no trace", **asked, weights=[10, 0, 0, 0])
    assert only_task["score"] == 0
    for wrong in ("n-queens", "{}", None, "[]"):
        with pytest.raises(ValueError, match="ground_truth|entry"):
            verl.compute_score(**{**asked, "ground_truth": wrong}, solution_str="")


class Tensor(list):
    """As much of a tensor as OpenRLHF takes."""

    def item(self) -> float:
        (value,) = self
        return value


@pytest.fixture
def openrlhf(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The adapter with what it imports, reduced to what it uses: OpenRLHF itself cannot be installed without a GPU."""
    torch = types.ModuleType("torch")
    torch.tensor = lambda value: Tensor(value if isinstance(value, list) else [value])  # type: ignore[attr-defined]
    agent = types.ModuleType("openrlhf.utils.agent")
    agent.AgentInstanceBase = type("AgentInstanceBase", (), {})  # type: ignore[attr-defined]

    class Executor:
        def __init__(self, instance: type) -> None:
            self.agent_instance_cls = instance

    agent.MultiTurnAgentExecutor = Executor  # type: ignore[attr-defined]
    for name, module in (("torch", torch), ("openrlhf", types.ModuleType("openrlhf")), ("openrlhf.utils.agent", agent)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "openrlhf.utils", types.ModuleType("openrlhf.utils"))
    return importlib.import_module("prime_bench.integrations.openrlhf")


def test_openrlhf_takes_rewards_of_a_query_and_of_turns(openrlhf: types.ModuleType) -> None:
    row = row_of("bubble-sort")
    label = json.dumps({name: row[name] for name in ("task", "difficulty", "index", "base_seed")})
    instance = Instance(*json.loads(label).values())
    # SingleTurnAgentExecutor calls it with lists of one.
    found = openrlhf.reward_func(["<user>sort<bot>" + right_output(instance)], ["<user>sort<bot>"], [label])
    assert found["rewards"].item() == composite_reward(right_output(instance), instance).total
    assert found["scores"].item() == 1.0

    async def play() -> tuple[float, dict]:
        agent = openrlhf.AgentExecutor().agent_instance_cls()
        opening = await agent.reset({"observation": "sort", "label": label})
        assert opening["observation"] == "sort"
        total, result = 0.0, {}
        for line in instance.reference():
            states = {"observation_text": "", "action_text": f"I take\n{line}\n", "label": label, "sampling_params": None}
            result = await agent.step(states)
            total += result["rewards"].item()
        return total, result

    total, result = asyncio.run(play())
    assert result["done"] and total == pytest.approx(composite_reward(right_output(instance), instance).total)
    assert result["scores"].item() == pytest.approx(total)


def test_nemo_gym_resets_and_steps_by_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """NeMo Gym needs a Python of its own and ray: its base class is reduced to what it hands over; `make interop` runs it."""

    class Server:
        def __init__(self) -> None:
            self.session_state: dict = {}

    base = types.ModuleType("resources_servers.gymnasium.base")
    base.GymnasiumServer = Server  # type: ignore[attr-defined]
    base.extract_text = lambda response: response["text"]  # type: ignore[attr-defined]
    for name in ("resources_servers", "resources_servers.gymnasium"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "resources_servers.gymnasium.base", base)
    module = importlib.import_module("prime_bench.integrations.nemo_gym")
    row = row_of("gcd-euclidean")
    instance = Instance(*(row[name] for name in ("task", "difficulty", "index", "base_seed")))

    async def play() -> tuple[float, bool]:
        server = module.PrimeResourcesServer()
        observation, info = await server.reset(row, "a")
        assert observation.startswith("State: ") and info == {"task": "gcd-euclidean"}
        # The prompt in this style has the state.
        assert await server.reset({**row, "style": "turns"}, "b") == (None, info)
        total, done = 0.0, False
        for line in instance.reference():
            assert not done
            _, reward, done, truncated, _ = await server.step({"text": f"so\n{line}"}, {}, "a")
            total += reward
            assert not truncated
        with pytest.raises(ValueError, match="reset"):
            await server.step({"text": ""}, {}, "c")
        return total, done

    total, done = asyncio.run(play())
    assert done and total == pytest.approx(composite_reward(instance.reference(), instance).total)
