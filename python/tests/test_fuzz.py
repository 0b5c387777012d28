"""No input ends the interpreter, and no panic crosses into Python: whatever is raised is an ordinary exception."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prime_bench
from prime_bench import Instance, StepEnv, VectorStepEnv, composite_reward, judge

SLUGS = [task.slug for task in prime_bench.tasks()]
EXAMPLES = settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TEXT = st.text(max_size=80) | st.binary(max_size=80).map(lambda data: data.decode("latin-1"))
OBJECT = JSON | st.binary(max_size=8) | st.sets(st.integers(), max_size=2) | st.builds(object)


def mutated(line: str, rng: random.Random) -> str:
    """The line with a character put in, taken out or replaced, or a number changed."""
    at = rng.randrange(len(line) + 1)
    put = rng.choice(["", "0", "9", "-", " ", "99999999999999999999", "9007199254740991", "\x00", "\U0001f600", "é"])
    return line[:at] + put + line[at + rng.randrange(2) :]


@pytest.mark.parametrize("slug", SLUGS)
def test_mutated_lines(slug: str) -> None:
    rng = random.Random(slug)
    env = StepEnv(Instance(slug, rng.choice(["easy", "medium"]), rng.randrange(1000), rng.randrange(2**44)), kinds="format")
    for _ in range(150):
        if env.done:
            env.reset()
        line = env.reference() or "done"
        observation, reward, *_, info = env.step(mutated(line, rng) if rng.random() < 0.7 else line)
        assert json.loads(observation) is not None and reward == reward and info["score"] >= 0
    env.fork().correct()
    assert composite_reward(env.lines, env.instance).format <= 1


@pytest.mark.parametrize("slug", SLUGS)
def test_mutated_inputs(slug: str) -> None:
    rng = random.Random(slug)
    values = [None, 0, -1, 1, 2, 10**6, 2**53, 2**63 - 1, 2**64, 1.5, "", "x", [], {}, True, [[]], {"a": 1}]

    def change(value: object) -> object:
        if isinstance(value, dict) and value and rng.random() < 0.8:
            name = rng.choice(list(value))
            return {**value, name: change(value[name])}
        if isinstance(value, list) and value and rng.random() < 0.8:
            place = rng.randrange(len(value))
            return [*value[:place], change(value[place]), *value[place + 1 :]]
        return rng.choice(values)

    for _ in range(60):
        given_input = change(Instance(slug, index=rng.randrange(200)).input)
        try:
            instance = Instance.from_input(slug, given_input)  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            assert str(error)
            continue
        env = StepEnv(instance)
        for _ in range(3):
            if not env.done:
                env.step(env.reference() or "done")


@EXAMPLES
@given(st.sampled_from(SLUGS), st.lists(TEXT, min_size=1, max_size=8))
def test_any_lines(slug: str, lines: list[str]) -> None:
    instance = Instance(slug)
    envs = VectorStepEnv([instance] * len(lines))
    rewards = envs.step(lines)[1]
    assert rewards == [pytest.approx(StepEnv(instance).step(line)[1]) for line in lines]
    composite_reward(lines, instance)


@EXAMPLES
@given(st.sampled_from(SLUGS), TEXT | st.fixed_dictionaries({}, optional={"actions": st.lists(TEXT), "answer": JSON}))
def test_any_output(slug: str, output: object) -> None:
    try:
        assert judge(output, Instance(slug)).id == f"{slug}/easy/000"  # type: ignore[arg-type]
    except ValueError as error:
        assert str(error)


@EXAMPLES
@given(OBJECT, OBJECT, OBJECT)
def test_any_arguments(first: object, second: object, third: object) -> None:
    instance = Instance("bubble-sort")
    calls = [
        lambda: Instance(first, second, third),  # type: ignore[arg-type]
        lambda: Instance("bubble-sort", difficulty="easy", index=first, base_seed=second),  # type: ignore[arg-type]
        lambda: Instance.from_input("n-queens", first),  # type: ignore[arg-type]
        lambda: instance.accepts(first),
        lambda: instance.prompt(first, second),  # type: ignore[arg-type]
        lambda: StepEnv(instance, kinds=first, weights=second, max_steps=third),  # type: ignore[arg-type]
        lambda: StepEnv(instance).step(first),  # type: ignore[arg-type]
        lambda: StepEnv(instance).reset(seed=first, options=second),  # type: ignore[arg-type]
        lambda: VectorStepEnv(first),  # type: ignore[arg-type]
        lambda: VectorStepEnv([instance] * 2).step(first),  # type: ignore[arg-type]
        lambda: VectorStepEnv([instance]).reset_at(first, second),  # type: ignore[arg-type]
        lambda: judge(first, instance, kinds=second),  # type: ignore[arg-type]
        lambda: prime_bench.judge_many(first, second),  # type: ignore[arg-type]
        lambda: composite_reward(first, instance, weights=second),  # type: ignore[arg-type]
        lambda: prime_bench.grammar("bubble-sort", first),  # type: ignore[arg-type]
        lambda: prime_bench.tasks(first),  # type: ignore[arg-type]
        lambda: prime_bench.create_dataset("bubble-sort", first, second),  # type: ignore[arg-type]
        lambda: prime_bench.score_answer(first, {"metadata": second}),  # type: ignore[arg-type, dict-item]
    ]
    for call in calls:
        try:
            call()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            assert str(error)
