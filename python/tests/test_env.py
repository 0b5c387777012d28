"""Step environments: Gymnasium's form, rewards, ends, copies, pickles, many at once."""

from __future__ import annotations

import copy
import json
import os
import pickle
import threading

import pytest

import prime_bench
from prime_bench import EpisodeOver, Instance, StepEnv, VectorStepEnv

SLUGS = [task.slug for task in prime_bench.tasks()]


def sort_env(**rules: object) -> StepEnv:
    return StepEnv(Instance.from_input("bubble-sort", {"a": [3, 1, 2]}), **rules)


def play(env: StepEnv) -> tuple[list[float], bool, dict]:
    """The rewards of the reference trace, whether it terminated, and the last info."""
    rewards, terminated, info = [], False, {}
    while not terminated:
        line = env.reference()
        assert line is not None
        observation, reward, terminated, truncated, info = env.step(line)
        assert not truncated and info["score"] == 0 and info["violations"] == [] and info["refusal"] is None
        json.loads(observation)
        rewards.append(reward)
    return rewards, terminated, info


def test_a_step_has_gymnasium_s_form() -> None:
    env = sort_env()
    observation, info = env.reset(seed=1)
    assert json.loads(observation)["a"] == [3, 1, 2] and info == {"task": "bubble-sort", "instance": None}
    observation, reward, terminated, truncated, info = env.step("cmp 0 1")
    assert type(observation) is str and type(reward) is float and (terminated, truncated) == (False, False)
    # The first applicable line takes the share of applicable lines from nothing to all: λ.
    assert reward == pytest.approx(0.1)
    assert info == {"score": 0.0, "violations": [], "refusal": None, "reason": None, "steps": 1}


def test_the_reward_of_a_clean_trace_is_r() -> None:
    env = sort_env()
    rewards, _, info = play(env)
    steps, most = len(rewards), env.instance.max_steps
    # α + γ·(1 − |τ| / T_max) + λ, with the paper's weights.
    wanted = 10 + 0.5 * (1 - steps / most) + 0.1
    assert sum(rewards) == pytest.approx(wanted) and env.trajectory_reward().total == pytest.approx(wanted)
    assert rewards[0] == pytest.approx(0.1) and rewards[1:-1] == pytest.approx([0.0] * (steps - 2))
    assert info["answer"] == env.answer and info["answer"]["sorted"] == [1, 2, 3] and env.correct()
    assert env.lines == env.instance.reference() and env.done


def test_refused_lines_leave_the_state_and_cost() -> None:
    env = sort_env()
    before = env.observation
    # V of a line that is refused is that of the critical constraint `format`: 1.
    observation, reward, *_, info = env.step("compare 0 and 1")
    assert (observation, info["refusal"], info["violations"]) == (before, "unparsable", ["format"])
    assert reward == pytest.approx(-1.0)
    observation, reward, *_, info = env.step("cmp 7 8")
    assert (observation, info["refusal"]) == (before, "illegal") and info["reason"].startswith("cannot be applied here")
    assert info["steps"] == 0 and env.lines == []
    _, reward, *_ = env.step("cmp 0 1")
    assert reward == pytest.approx(0.1 / 3)


def test_a_violation_is_applied_or_rejected_as_the_rules_say() -> None:
    right = sort_env().reference()
    for wrong in ("swap 1 2", "swap 0 2", "cmp 1 2", "done"):
        lenient = sort_env(kinds="transition")
        observation, reward, *_, info = lenient.step(wrong)
        if info["refusal"] is not None:
            continue
        assert wrong != right and info["score"] > 0 and lenient.lines == [wrong] and reward < 0.1
        strict = sort_env(kinds="transition", reject_violations=True)
        before = strict.observation
        observation, _, terminated, _, info = strict.step(wrong)
        assert observation == before and strict.lines == [] and info["score"] > 0 and not terminated
        return
    pytest.fail("no line breaks the transition constraint")


def test_weights_are_the_caller_s() -> None:
    env = sort_env(weights=(1, 0, 0, 0))
    rewards, *_ = play(env)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    reward = prime_bench.composite_reward(env.lines, env.instance, weights=[2, 0, 0, 0])
    assert reward.total == 2.0 and reward.task == 1.0 and reward.format == 1.0


def test_after_the_end_a_step_raises_and_a_reset_starts_again() -> None:
    env = sort_env(max_steps=2)
    assert env.step("x")[2:4] == (False, False)
    assert env.step("cmp 0 1")[2:4] == (False, True)
    for _ in range(2):
        with pytest.raises(EpisodeOver, match=r"reset\(\)"):
            env.step("cmp 0 1")
    assert issubclass(EpisodeOver, RuntimeError)
    first, _ = env.reset()
    assert not env.done and env.lines == [] and env.step("cmp 0 1")[1] == pytest.approx(0.1)
    # In mid-episode too.
    assert env.reset()[0] == first and env.step("cmp 0 1")[1] == pytest.approx(0.1)


def test_a_reset_may_change_the_instance() -> None:
    env, other = sort_env(), Instance("n-queens", index=2)
    observation, info = env.reset(options={"instance": other})
    assert info == {"task": "n-queens", "instance": "n-queens/easy/002"} and env.instance == other
    assert env.max_steps == other.max_steps and observation == StepEnv(other).observation
    assert sort_env(max_steps=5).reset(options={})[1]["instance"] is None
    for options, error in (({"instances": other}, ValueError), ({"instance": 3}, TypeError), (7, TypeError)):
        with pytest.raises(error, match="options"):
            env.reset(options=options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"kinds": "semantic"}, ValueError, "kinds: unknown kind"),
        ({"kinds": []}, ValueError, "kinds: name at least one"),
        ({"kinds": 4}, TypeError, "kinds: "),
        ({"weights": (1, 2, 3)}, ValueError, "weights: give four numbers"),
        ({"weights": (1, 2, 3, float("inf"))}, ValueError, "weights: "),
        ({"weights": "1234"}, TypeError, "weights: "),
        ({"max_steps": 0}, ValueError, "max_steps: 0 is not between 1"),
        ({"max_steps": "9"}, TypeError, "max_steps: expected an int, not str"),
    ],
)
def test_bad_rules_name_the_argument(rules: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        sort_env(**rules)
    with pytest.raises(error, match=message):
        VectorStepEnv([Instance("bubble-sort")], **rules)


def test_bad_lines_and_instances_are_type_errors() -> None:
    for line in (None, 1, b"cmp 0 1", ["cmp 0 1"]):
        with pytest.raises(TypeError, match="line: expected a str"):
            sort_env().step(line)  # type: ignore[arg-type]
    assert sort_env().step("cmp \ud800")[4]["refusal"] == "unparsable"
    with pytest.raises(TypeError, match="instance: expected an Instance, not str"):
        StepEnv("bubble-sort")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"instances\[1\]: expected an Instance, not int"):
        VectorStepEnv([Instance("bubble-sort"), 1])  # type: ignore[list-item]


def wander(env: StepEnv, seed: int) -> None:
    """Some right and some wrong steps."""
    other = StepEnv(Instance(env.instance.task, index=seed + 1)).reference() or ""
    for place in range(12):
        if env.done:
            return
        env.step(other if place % 5 == seed % 5 else env.reference() or "done")


@pytest.mark.parametrize("slug", SLUGS)
def test_copies_and_pickles_go_on_alike(slug: str) -> None:
    env = StepEnv(Instance(slug, index=1), weights=(5, 1, 1, 1))
    wander(env, 3)
    twins = [env.fork(), copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    many = VectorStepEnv([env.instance] * 2, threads=1)
    for twin in twins:
        assert (twin.observation, twin.lines, twin.done) == (env.observation, env.lines, env.done)
    while not env.done and len(env.lines) < 30:
        line = env.reference() or "done"
        wanted = env.step(line)
        for twin in twins:
            assert twin.step(line) == wanted
        if not any(line is None for line in many.reference()):
            many.step(many.reference())
            again = pickle.loads(pickle.dumps(many))
            assert again.reference() == many.reference() and again.instances == many.instances
    assert all(twin.trajectory_reward() == env.trajectory_reward() for twin in twins)


def test_a_fork_does_not_change_its_origin() -> None:
    env = sort_env()
    env.step("cmp 0 1")
    before = env.observation
    play(env.fork())
    assert env.observation == before and not env.done


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"task": "x"}', "\x00"])
def test_a_broken_pickle_is_a_value_error(text: str) -> None:
    from prime_bench import _native

    for restore in (_native._restore_instance, _native._restore_env):
        with pytest.raises(ValueError):
            restore(text)
    if text != "[]":
        with pytest.raises(ValueError):
            _native._restore_vector_env(text, 1)


@pytest.mark.parametrize("threads", [1, 4])
def test_ten_thousand_at_once_do_what_single_ones_do(threads: int) -> None:
    instances = [Instance(SLUGS[place % len(SLUGS)], index=place % 7) for place in range(len(SLUGS) * 7)]
    envs = VectorStepEnv([instances[place % len(instances)] for place in range(10_000)], threads=threads)
    single = [StepEnv(instance) for instance in instances]
    observations, _ = envs.reset()
    assert envs.num_envs == len(envs) == 10_000
    for turn in range(3):
        lines = [None if line is None else line + " " * (place % 11 == turn) for place, line in enumerate(envs.reference())]
        observations, rewards, terminated, truncated, infos = envs.step(lines)
        for place, env in enumerate(single):
            if lines[place] is None:
                assert (rewards[place], infos["score"][place]) == (0.0, 0.0)
                continue
            wanted = env.step(lines[place])
            found = (observations[place], rewards[place], terminated[place], truncated[place])
            assert found == wanted[:4]
            assert (infos["score"][place], infos["refusal"][place]) == (wanted[4]["score"], wanted[4]["refusal"])


def test_lines_to_many_are_taken_together_or_not_at_all() -> None:
    envs = VectorStepEnv([Instance.from_input("bubble-sort", {"a": [2, 1]})] * 3, max_steps=1)
    first, _ = envs.reset()
    for lines, error, message in (
        (["cmp 0 1"] * 2, ValueError, "lines: there are 2 for 3 environments"),
        (["cmp 0 1"] * 4, ValueError, "lines: there are 4 for 3 environments"),
        (["cmp 0 1", 2, "cmp 0 1"], TypeError, r"lines\[1\]: expected a str or None, not int"),
        ("cmp", TypeError, "lines: expected a sequence"),
        (3, TypeError, "lines: expected a sequence"),
    ):
        with pytest.raises(error, match=message):
            envs.step(lines)  # type: ignore[arg-type]
    assert envs.step([None, "cmp 0 1", None])[3] == [False, True, False]
    with pytest.raises(EpisodeOver, match=r"lines\[1\]: the episode has ended: give None, or call reset_at"):
        envs.step(["cmp 0 1"] * 3)
    assert envs.step(["cmp 0 1", None, None])[1] == [pytest.approx(0.1 + 0.5 * (1 - 1 / envs.instances[0].max_steps)), 0, 0]
    assert envs.reset_at(1) == first[1] and envs.step([None, "cmp 0 1", None])[3][1]
    assert envs.reset_at(2, Instance("n-queens")) == StepEnv(Instance("n-queens")).observation
    for index, error in ((3, ValueError), (-1, ValueError), ("0", TypeError)):
        with pytest.raises(error, match="index: "):
            envs.reset_at(index)  # type: ignore[arg-type]
    assert VectorStepEnv([]).step([]) == ([], [], [], [], {"score": [], "refusal": []})


def test_other_threads_run_while_many_are_stepped() -> None:
    """Another thread counts; were the interpreter's lock held, it could not do so during a step."""
    count, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            count[0] += 1

    envs = VectorStepEnv([Instance("sudoku", index=place % 200) for place in range(2_000)], threads=2)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        moved = False
        for _ in range(200):
            envs.reset()
            lines = envs.reference()
            before = count[0]
            envs.step(lines)
            moved = moved or count[0] > before
            if moved:
                break
        assert moved
    finally:
        stop.set()
        thread.join()


def test_one_environment_used_by_threads_raises_and_does_not_crash() -> None:
    envs = VectorStepEnv([Instance("bubble-sort", index=place % 200) for place in range(1_000)], threads=1)
    errors: list[BaseException] = []

    def drive() -> None:
        for _ in range(30):
            try:
                envs.reset()
                envs.step(["cmp 0 1"] * 1_000)
            except (RuntimeError, ValueError) as error:
                errors.append(error)

    threads = [threading.Thread(target=drive) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("orrowed" in str(error) or isinstance(error, EpisodeOver) for error in errors), errors[:3]
    envs.reset()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_goes_on() -> None:
    envs = VectorStepEnv([Instance("bubble-sort", index=place % 200) for place in range(2_000)], threads=4)
    envs.step(envs.reference())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            rewards = envs.step(envs.reference())[1]
            prime_bench.judge_many(["x"] * 8, envs.instances[:8], threads=4)
            os.write(writer, json.dumps(sum(rewards)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        in_child = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert in_child == sum(envs.step(envs.reference())[1])


def test_a_vector_is_reset_to_other_instances() -> None:
    first, second = list(prime_bench.instances("bubble-sort", count=2)), list(prime_bench.instances("n-queens", count=2))
    envs = VectorStepEnv(first)
    observations, _ = envs.reset(options={"instances": second})
    assert observations == VectorStepEnv(second).reset()[0] != VectorStepEnv(first).reset()[0]
    assert envs.reset()[0] == observations and envs.reset(options={})[0] == observations
    for options, error in (
        ({"instances": second[:1]}, ValueError),
        ({"instances": ["n-queens"] * 2}, TypeError),
        ({"instances": 3}, TypeError),
        ({"instance": second[0]}, ValueError),
        ([second], TypeError),
    ):
        with pytest.raises(error, match="options"):
            envs.reset(options=options)
    assert envs.reset()[0] == observations
