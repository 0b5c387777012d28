"""Tasks of one's own as environments, under the judge, the reward and the adapters of trainers."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import prime_bench
from prime_bench import Broken, EpisodeOver, Instance, Refused, StepEnv, Task, VectorStepEnv, judge


class Count(Task):
    name = "count-up"
    statement = "Count to the goal exactly."
    step = "a number to add"
    actions = ["<1|3>"]
    constraints = [{"name": "beyond", "severity": "major"}, {"name": "late", "severity": "minor", "kind": "transition"}]

    def start(self, given: Any) -> Any:
        if given["goal"] < 1:
            raise Refused("the goal is not positive")
        return 0

    def apply(self, given: Any, state: Any, line: str) -> Any:
        if line not in ("1", "3"):
            raise Refused("write 1 or 3")
        return state + int(line)

    def violations(self, given: Any, state: Any, line: str, after: Any) -> list[Broken]:
        late = [Broken("late", severity="minor")] if line == "1" and state + 3 <= given["goal"] else []
        return late + ([Broken("beyond", severity="major")] if after > given["goal"] else [])

    def done(self, given: Any, state: Any) -> bool:
        return state >= given["goal"]

    def choices(self, given: Any, state: Any) -> list[str]:
        return ["1", "3"]

    def hint(self, given: Any, state: Any) -> str:
        return "3" if state + 3 <= given["goal"] else "1"

    def score_answer(self, given: Any, answer: Any) -> float:
        return max(0.0, 1 - abs(answer - given["goal"]) / given["goal"])

    def steps_max(self, given: Any) -> int:
        return 10


def instance(goal: int = 4) -> prime_bench.OwnInstance:
    return Count().instance({"goal": goal})


def test_an_episode_goes_as_that_of_a_built_in_task() -> None:
    env = StepEnv(instance())
    assert isinstance(env, StepEnv) and isinstance(StepEnv(Instance("bubble-sort")), StepEnv)
    assert env.reset() == ("0", {"task": "count-up", "instance": None})
    assert (env.max_steps, env.choices(), env.reference()) == (10, ["1", "3"], "3")

    observation, reward, terminated, truncated, info = env.step("- `3`")
    assert (observation, terminated, truncated) == ("3", False, False)
    assert reward == pytest.approx(0.1) and info["score"] == 0 and env.lines == ["3"]

    _, reward, _, _, info = env.step("two")
    assert (info["refusal"], info["reason"], info["violations"], info["score"]) == ("illegal", "write 1 or 3", ["format"], 1.0)
    # V = 1, and half of the lines could be applied.
    assert reward == pytest.approx(-1 + 0.1 * (0.5 - 1)) and env.observation == "3"

    fork, saved = env.fork(), pickle.loads(pickle.dumps(env.fork().instance.input))
    assert saved == {"goal": 4}
    _, reward, terminated, _, info = env.step("1")
    assert terminated and info["answer"] == 4 and env.correct() and env.answer == 4
    # R: task 10, efficiency 0.5 · (1 − 2/10), and the share of lines that grew from 1/2 to 2/3.
    assert reward == pytest.approx(10 + 0.4 + 0.1 * (2 / 3 - 1 / 2))
    assert env.trajectory_reward().total == pytest.approx(10 + 0.4 + 0.1 * 2 / 3)
    with pytest.raises(EpisodeOver):
        env.step("1")

    # The fork is where it was; what goes beyond breaks a constraint and is not a right answer.
    assert not fork.done and fork.observation == "3"
    assert fork.step("3")[4]["violations"] == ["beyond"] and fork.done and not fork.correct()


def test_rules_and_refusals() -> None:
    env = StepEnv(instance(9), kinds=("format", "transition"), max_steps=2, reject_violations=True)
    assert env.kinds == ["format", "transition"]
    assert env.step("1")[4]["violations"] == ["late"] and env.lines == []
    _, _, terminated, truncated, info = env.step("\t")
    assert (terminated, truncated, info["refusal"]) == (False, True, "unparsable")

    with pytest.raises(Refused, match="not positive"):
        instance(0)
    with pytest.raises(ValueError, match="kinds: 'all'"):
        StepEnv(instance(), kinds="all")
    with pytest.raises(ValueError, match="unknown key seed"):
        StepEnv(instance()).reset(options={"seed": 1})
    with pytest.raises(TypeError, match="line"):
        StepEnv(instance()).step(3)  # type: ignore[arg-type]


def test_many_at_once_with_built_in_tasks_among_them() -> None:
    envs = VectorStepEnv([instance(1), Instance("bubble-sort"), instance(4)])
    assert (envs.num_envs, envs.reference()[0], envs.reference()[2]) == (3, "1", "3")
    observations, rewards, terminated, truncated, infos = envs.step(["1", None, "9"])
    assert (observations[0], observations[2]) == ("1", "0") and truncated == [False] * 3
    assert (terminated, infos["refusal"], infos["score"]) == ([True, False, False], [None, None, "illegal"], [0.0, 0.0, 1.0])
    assert rewards[1] == 0.0
    with pytest.raises(EpisodeOver, match=r"lines\[0\]"):
        envs.step(["1", None, None])
    assert envs.step([None] * 3)[2] == [True, False, False], "an end lasts until the reset"
    assert envs.reset_at(0) == "0" and envs.step([None] * 3)[2] == [False] * 3
    with pytest.raises(ValueError, match="lines"):
        envs.step(["1"])


def test_outputs_are_judged_and_rewarded() -> None:
    right = judge("<actions>\n3\n1\n</actions><answer>4</answer>", instance())
    assert (right.format, right.syntax, right.semantic, right.result) == ("passed",) * 4
    assert (right.id, right.steps, right.reference_steps, right.efficiency) == ("count-up", 2, 2, 1.0)

    wrong = judge({"actions": ["3", "3"], "answer": 6}, instance())
    assert (wrong.semantic, wrong.result) == ("failed", "failed")
    assert wrong.first_error is not None and (wrong.first_error.step, wrong.first_error.expected) == (1, "1")
    assert [(one.constraint, one.severity, one.times) for one in wrong.violations] == [("beyond", "major", 1)]

    late = judge("<actions>\n1\n3\n3\n</actions>", instance(4))
    assert late.first_error is not None and late.first_error.violations == ("late",)
    assert late.violations[-1].constraint == "format"
    assert judge("no idea", instance()).format == "failed"

    reward = prime_bench.composite_reward(["3", "1"], instance())
    assert reward.total == pytest.approx(10 + 0.5 * 0.8 + 0.1) and sum(reward.steps) == pytest.approx(reward.total)
    assert prime_bench.composite_reward("<actions>3\n1</actions><answer>5</answer>", instance()).task == 0
    assert prime_bench.composite_reward("nothing", instance()).total == pytest.approx(-1 + 0.5)


def test_answers_are_scored_and_rows_name_instances() -> None:
    prime_bench.register(Count())
    entries = prime_bench.own_entries(Count(), [{"goal": 4}, {"goal": 2}], style="turns")
    assert entries[1]["metadata"] == {"task": "count-up", "input": '{"goal": 2}'}
    assert prime_bench.score_answer("<answer>3</answer>", entries[0]) == 0.75
    assert prime_bench.score_answers(["4", None], entries) == [1.0, 0.0]
    with pytest.raises(ValueError, match="task of the benchmark"):
        prime_bench.register(type("Taken", (Count,), {"name": "bubble-sort"})())

    from prime_bench.integrations import trl, verl

    rows = trl.rows(entries)
    columns = {name: [row[name] for row in rows] for name in ("task", "input")}
    assert trl.correct([], ["<answer>4</answer>", "<answer>1</answer>"], **columns) == [1.0, 0.0]
    assert trl.composite([], ["<actions>3\n1</actions>", "<actions>1\n1</actions>"], **columns)[0] == pytest.approx(10.5)

    environment = trl.PrimeEnvironment()
    assert environment.reset(**rows[0]) is None, "the prompt has the state"
    assert environment.step("3") == "State: 3" and environment.step("1") == "The trace has ended. State: 4"
    assert environment.get_reward() == pytest.approx(10.5)

    truth = json.dumps(entries[0]["metadata"])
    assert verl.compute_score("", "<actions>3\n1</actions>", truth)["acc"] == 1.0


class Plain(Count):
    """Without hints and scores."""

    name = "count-plain"

    def hint(self, given: Any, state: Any) -> None:
        return None

    def score_answer(self, given: Any, answer: Any) -> None:
        return None


def test_without_hints_a_clean_trace_says_what_is_right() -> None:
    plain = Plain().instance({"goal": 4})
    assert judge({"actions": ["3", "1"]}, plain).result == "passed"
    assert judge({"actions": ["3", "1"], "answer": 5}, plain).result == "failed"
    assert judge({"answer": 4}, plain).result == "failed", "nothing shows it"
    with pytest.raises(ValueError, match="no reference"):
        plain.answer()
    env = StepEnv(plain)
    env.step("3")
    env.step("1")
    assert env.correct() and copy.deepcopy(env).answer == 4
    assert plain == Plain().instance({"goal": 4}) and len({plain, Plain().instance({"goal": 4})}) == 1
