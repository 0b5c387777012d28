"""The judge and the composite reward, against what the program has recorded and against numbers computed by hand."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import pickle

import pytest

import prime_bench
from prime_bench import Instance, StepEnv, composite_reward, judge, judge_many


def instance_of(line: dict) -> Instance:
    task, difficulty, index = line["id"].split("/")
    return Instance(task, difficulty, int(index))


def output_of(line: dict) -> object:
    return line["output"] if "output" in line else {name: line[name] for name in ("actions", "answer") if name in line}


def as_json(judgement: prime_bench.Judgement) -> dict:
    return json.loads(json.dumps(dataclasses.asdict(judgement)))


def test_judgements_are_those_of_the_program(outputs: list, judgements: list) -> None:
    assert len(outputs) == len(judgements) > 300
    stages = set()
    for line, wanted in zip(outputs, judgements, strict=True):
        found = judge(output_of(line), instance_of(line))
        assert as_json(found) == wanted, line["id"]
        stages.add((found.format, found.syntax, found.semantic, found.result))
    assert len(stages) > 5, "the outputs fail at every stage"


@pytest.mark.parametrize("threads", [0, 1, 5])
def test_many_are_judged_as_one_is(outputs: list, judgements: list, threads: int) -> None:
    found = judge_many([output_of(line) for line in outputs], [instance_of(line) for line in outputs], threads=threads)
    assert [as_json(judgement) for judgement in found] == judgements


def test_a_judgement_pickles(outputs: list) -> None:
    line = outputs[0]
    found = judge(output_of(line), instance_of(line))
    assert pickle.loads(pickle.dumps(found)) == found
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.starmap(judge, [(output_of(line), instance_of(line))]) == [found]


def test_the_kinds_decide_what_counts() -> None:
    instance = Instance.from_input("bubble-sort", {"a": [1, 2, 3]})
    lines = instance.reference()
    # A comparison made twice is not a step of the algorithm and breaks nothing else.
    doubled = {"actions": [lines[0], *lines], "answer": instance.answer()}
    assert judge(doubled, instance).semantic == "failed"
    assert judge(doubled, instance).violations[0].constraint != "format"
    assert judge({"actions": lines}, instance).correct, "the last state of a complete trace holds its answer"
    with pytest.raises(ValueError, match="kinds: "):
        judge("", instance, kinds=["semantics"])


@pytest.mark.parametrize(
    ("output", "error", "message"),
    [
        (7, TypeError, "output: expected a str, or a dict of actions and answer, not int"),
        ({"action": []}, ValueError, "output: unknown key \"action\""),
        ({"actions": "cmp 0 1"}, TypeError, r'output\["actions"\]: expected a sequence of str'),
        ({"actions": ["cmp 0 1", 2]}, TypeError, r'output\["actions"\]\[1\]: expected a str, not int'),
        ({"answer": {1}}, TypeError, r'output\["answer"\]: expected what JSON can say'),
    ],
)
def test_bad_outputs_name_the_place(output: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        judge(output, Instance("bubble-sort"))  # type: ignore[arg-type]


def test_what_no_json_can_say_is_a_bad_output() -> None:
    instance = Instance("gcd-euclidean")
    lines, answer = instance.reference(), instance.answer()
    text = "<actions>\n" + "\n".join(lines) + f"\n</actions><answer>{json.dumps(answer)}</answer>"
    assert not judge("\ud800", instance).correct
    assert judge(text + "\udfff", instance).correct, "the surrogate is not part of the answer"
    for bad in ("\ud800", 1 << 70, float("nan")):
        assert not judge({"actions": lines, "answer": {**answer, "gcd": bad}}, instance).correct
    assert judge({"answer": {name: float(value) for name, value in answer.items()}}, instance).correct
    assert StepEnv(instance).step("\ud800")[4]["refusal"] == "unparsable"
    assert composite_reward(["\ud800"], instance).format == 0.0


@pytest.mark.parametrize("answer", ['{"gcd":999,"x":0,"y":0,}', "The gcd is 999.", "[999,0,0]", '{"gcd":999,"x":0,"y":0}'])
def test_a_bad_answer_after_a_right_trace_is_wrong_for_judge_and_reward(answer: str) -> None:
    instance = Instance("gcd-euclidean")
    trace = "<actions>\n" + "\n".join(instance.reference()) + "\n</actions>"
    assert judge(trace, instance).correct and composite_reward(trace, instance).task == 1.0
    text = f"{trace}<answer>{answer}</answer>"
    assert not judge(text, instance).correct
    reward = composite_reward(text, instance)
    assert reward.task == 0.0 and sum(reward.steps) == pytest.approx(reward.total)


@pytest.mark.parametrize("form", ["{} ", "{}\n", "{}\r\n", "**{}**", "1. {}", "`{}`", "Action: {}.", "\ufeff{}\0", "$\\boxed{{{}}}$"])
def test_every_spelling_of_a_right_trace_earns_the_same(form: str) -> None:
    instance = Instance("gcd-euclidean")
    lines = instance.reference()
    spelt = [form.format(line) for line in lines]
    clean = composite_reward(lines, instance)
    assert composite_reward(spelt, instance) == clean
    env = StepEnv(instance)
    assert sum(env.step(line)[1] for line in spelt) == pytest.approx(clean.total)
    assert env.lines == lines and env.correct()


def test_outputs_and_instances_must_match() -> None:
    with pytest.raises(ValueError, match="instances: there are 1 for 2 outputs"):
        judge_many(["", ""], [Instance("bubble-sort")])
    with pytest.raises(TypeError, match="outputs: expected a sequence"):
        judge_many("ab", [Instance("bubble-sort")] * 2)
    assert judge_many([], []) == []


def test_the_reward_of_an_output_is_that_of_its_steps(outputs: list) -> None:
    """The environment and the function are two ways to the same numbers."""
    compared = 0
    for line in outputs:
        if "actions" not in line or not line["actions"]:
            continue
        instance = instance_of(line)
        reward = composite_reward(line["actions"], instance)
        assert len(reward.steps) == len(line["actions"])
        env = StepEnv(instance, max_steps=len(line["actions"]) + 1)
        found = []
        for action in line["actions"]:
            if env.done:
                break
            found.append(env.step(action)[1])
        if env.done and len(found) == len(reward.steps):
            assert found == pytest.approx(reward.steps)
            assert env.trajectory_reward() == prime_bench.Reward(
                reward.total, reward.task, reward.verify, reward.efficiency, reward.format
            )
            compared += 1
        else:
            assert found[:-1] == pytest.approx(reward.steps[: len(found) - 1])
    assert compared > 20


def test_rewards_by_hand() -> None:
    instance = Instance.from_input("bubble-sort", {"a": [2, 1]})
    lines, most = instance.reference(), instance.max_steps
    clean = composite_reward(lines, instance)
    share = 1 - len(lines) / most
    assert (clean.task, clean.verify, clean.efficiency, clean.format) == (1.0, 0.0, pytest.approx(share), 1.0)
    assert clean.total == pytest.approx(10 + 0.5 * share + 0.1) == pytest.approx(sum(clean.steps))
    # One refused line first: V = 1 there, one line of all is not applicable.
    late = composite_reward(["?", *lines], instance)
    count = len(lines)
    assert late.steps[0] == pytest.approx(-1.0)
    assert late.total == pytest.approx(10 + 0.5 * share + 0.1 * count / (count + 1))
    assert sum(late.steps) == pytest.approx(late.total - 1.0)
    # Going on after the end is refused, so the last step is not clean.
    beyond = composite_reward([*lines, "done"], instance)
    assert (beyond.task, beyond.verify) == (0.0, -1.0)
    text = "<actions>\n" + "\n".join(lines) + "\n</actions>"
    assert composite_reward(text, instance) == clean
    for nothing in ("I do not know", [], [""]):
        assert composite_reward(nothing, instance).total == pytest.approx(-1 + 0.5)
