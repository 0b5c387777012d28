"""Data sets in reasoning-gym's form, and in reasoning-gym."""

from __future__ import annotations

import json
import pickle

import pytest
import reasoning_gym

import prime_bench
from prime_bench import Instance, create_dataset, score_answer, score_answers
from prime_bench.dataset import instance_of
from prime_bench.integrations import reasoning_gym as adapter


def test_an_entry_has_question_answer_and_metadata() -> None:
    data = create_dataset("gcd-euclidean", size=3, seed=7)
    assert len(data) == 3 and len(list(data)) == 3
    entry = data[1]
    assert set(entry) == {"question", "answer", "metadata"}
    assert entry["metadata"]["source_dataset"] == "gcd-euclidean" and entry["metadata"]["source_index"] == 1
    json.dumps(entry)
    assert data[-1] == data[2] and create_dataset("gcd-euclidean", 3, 7)[1] == entry
    assert create_dataset("gcd-euclidean", 3, 8)[1] != entry
    assert data[::-1] == [data[2], entry, data[0]] and data[5:] == [] and data[-2:] == [entry, data[2]]
    for index, error in ((3, IndexError), (-4, IndexError), ("0", TypeError)):
        with pytest.raises(error, match="index: "):
            data[index]  # type: ignore[index]


def test_right_answers_score_one() -> None:
    for name in ("gcd-euclidean", "n-queens", "bubble-sort", "long-division"):
        data = create_dataset(name, size=5, seed=1)
        for entry in data:
            assert data.score_answer(entry["answer"], entry) == 1.0
            assert score_answer(f"So:\n<answer>{entry['answer']}</answer>", entry) == 1.0
            for wrong in (None, "", "{}", "42", "<answer>{}</answer>", entry["answer"][:-2]):
                assert score_answer(wrong, entry) == 0.0


def test_many_are_drawn_and_scored_as_one_is() -> None:
    for name in ("gcd-euclidean", "n-queens", "merge-sort"):
        data = create_dataset(name, size=600, seed=9, difficulty=["easy", "medium"])
        entries = list(data)
        # An entry by itself, and its instance by name, are other ways to it.
        for place in (0, 255, 256, 599):
            assert entries[place] == data[place] == data[place : place + 1][0]
            instance = data.instance(place)
            assert entries[place]["question"] == instance.prompt()
            assert json.loads(entries[place]["answer"]) == instance.answer()
        answers = [None if place % 5 == 0 else entries[place - place % 2]["answer"] for place in range(600)]
        for threads in (0, 1, 3):
            scores = data.score_answers(answers, entries, threads=threads)
            assert scores == [data.score_answer(answer, entry) for answer, entry in zip(answers, entries)]
        assert 200 < sum(scores) < 600 and scores[0] == 0.0 and scores[2] == 1.0
    for arguments, error, message in (
        ((["x"], []), ValueError, "entries: there are 0 for 1 answers"),
        (("x", entries[:1]), TypeError, "answers: expected a sequence"),
        (([1], entries[:1]), TypeError, r"answers\[0\]: expected a str or None, not int"),
        ((["x"], [{}]), ValueError, "entry: its metadata must have"),
        ((["x"], [{"metadata": 7}]), ValueError, "entry: its metadata must have"),
        ((["x"], [{**row_of(entries[0]), "task": "merge-sorted"}]), KeyError, "merge-sort"),
    ):
        with pytest.raises(error, match=message):
            score_answers(*arguments)
    assert score_answers([], []) == []


def row_of(entry: dict) -> dict:
    return entry["metadata"]


def test_scores_are_those_of_the_recorded_judgements(outputs: list, judgements: list) -> None:
    """`bench check` has judged these outputs of all sorts; whether the answer is right is its last stage."""
    compared = {0.0: 0, 1.0: 0}
    for output, judgement in zip(outputs, judgements, strict=True):
        if "output" not in output:
            continue
        task, difficulty, index = output["id"].split("/")
        entry = {"task": task, "difficulty": difficulty, "index": int(index), "base_seed": 42}
        score = score_answer(output["output"], entry)
        assert score == float(judgement["result"] == "passed"), output
        compared[score] += 1
    assert min(compared.values()) > 40, compared


def test_other_right_answers_score_one_too() -> None:
    entry = create_dataset("n-queens", size=1, base_seed=42)[0]
    queens = json.loads(entry["answer"])["queens"]
    mirrored = {"queens": [len(queens) - 1 - column for column in queens]}
    assert mirrored["queens"] != queens and score_answer(json.dumps(mirrored), entry) == Instance("n-queens").accepts(mirrored)


def test_no_seed_gives_an_instance_of_the_benchmark() -> None:
    for seed in (0, 42, 2**32):
        data = create_dataset("bubble-sort", size=2_001, seed=seed)
        assert all((data.instance(index).base_seed or 0) > 2**40 for index in (0, 999, 1_000, 2_000))
    own = create_dataset("bubble-sort", size=200, base_seed=42)
    assert [own.instance(index) for index in range(200)] == list(prime_bench.instances("bubble-sort"))
    drawn = create_dataset("bubble-sort", size=1)
    assert drawn.seed != create_dataset("bubble-sort", size=1).seed


def test_no_entry_has_an_input_that_the_benchmark_has() -> None:
    benchmark = [json.dumps(it.input) for level in ("easy", "medium", "hard") for it in prime_bench.instances("n-queens", level)]
    data = create_dataset("n-queens", size=400, seed=1)
    drawn = [data.instance(index) for index in range(400)]
    assert not {json.dumps(it.input) for it in drawn} & set(benchmark) and not any(it.in_benchmark for it in drawn)
    # Nearly half of what a seed gives at this level are the benchmark's: those were drawn again.
    seeds = {it.base_seed for it in drawn}
    assert len(seeds) > 1 and max(seeds) < 2**53 and all(instance_of(data[index]) == drawn[index] for index in (0, 7, 399))
    assert data[100:110] == [data[index] for index in range(100, 110)]

    met = create_dataset("n-queens", size=400, seed=1, benchmark_inputs=True)
    assert 100 < sum(met.instance(index).in_benchmark for index in range(400)) < 300
    other = Instance.from_input("n-queens", drawn[0].input)
    assert not other.in_benchmark and Instance.from_input("n-queens", json.loads(benchmark[0])).in_benchmark


def test_a_task_that_the_benchmark_exhausts_must_be_allowed() -> None:
    with pytest.raises(ValueError, match="difficulty: tower-of-hanoi, easy: 0 of 200 .*benchmark_inputs=True"):
        create_dataset("tower-of-hanoi", size=3, seed=1)
    assert len(create_dataset("tower-of-hanoi", size=3, seed=1, benchmark_inputs=True)[:]) == 3
    assert len(create_dataset("tower-of-hanoi", size=3, base_seed=42)[:]) == 3


def test_levels_are_taken_in_turn() -> None:
    phase = prime_bench.curriculum()[1]
    data = create_dataset("bubble-sort", size=4, seed=1, difficulty=phase.difficulties, style="baseline")
    assert [entry["metadata"]["difficulty"] for entry in data] == ["easy", "medium", "easy", "medium"]
    assert pickle.loads(pickle.dumps(data))[3] == data[3]


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"size": -1}, ValueError, "size: -1"),
        ({"size": "9"}, TypeError, "size: expected an int"),
        ({"seed": -1}, ValueError, "seed: -1"),
        ({"seed": 1, "base_seed": 1}, ValueError, "base_seed: give seed or base_seed"),
        ({"difficulty": "simple"}, ValueError, "difficulty: "),
        ({"difficulty": ()}, ValueError, "difficulty: "),
        ({"style": "terse"}, ValueError, "style: "),
        ({"min_n": 3}, TypeError, "min_n"),
        ({"benchmark_inputs": 3}, TypeError, "benchmark_inputs: expected a bool"),
    ],
)
def test_bad_configurations_name_the_field(config: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        create_dataset("bubble-sort", **config)


def test_an_entry_of_another_kind_is_a_value_error() -> None:
    for entry in ({}, {"metadata": {}}, {"metadata": None}):
        with pytest.raises(ValueError, match="entry: its metadata must have"):
            instance_of(entry)


def test_reasoning_gym_has_the_tasks() -> None:
    names = adapter.register()
    assert len(names) == len(prime_bench.tasks()) and adapter.register() == names
    data = reasoning_gym.create_dataset("prime_bubble_sort", size=2, seed=3)
    entry = data[0]
    assert entry["metadata"]["source_dataset"] == "prime_bubble_sort"
    assert entry["question"] == create_dataset("bubble-sort", 2, 3)[0]["question"]
    score = reasoning_gym.get_score_answer_fn(entry["metadata"]["source_dataset"])
    assert score(entry["answer"], entry) == 1.0 and score("no", entry) == 0.0
    assert len(list(data)) == 2
