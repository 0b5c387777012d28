"""Tasks, instances, grammars, curriculum: what they say, and what they refuse."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import re

import lark
import pytest

import prime_bench
from prime_bench import Instance

SLUGS = [task.slug for task in prime_bench.tasks()]


def test_there_are_tasks_in_12_categories() -> None:
    tasks = prime_bench.tasks()
    assert len(set(SLUGS)) == len(tasks) and len({task.category for task in tasks}) == 12
    sorts = prime_bench.tasks(category="comparison-sorting")
    assert sorts[0].slug == "bubble-sort" and 0 < len(sorts) < len(tasks)


def test_a_page_has_what_a_prompt_needs() -> None:
    task = prime_bench.task("bubble-sort")
    assert (task.id, task.title, task.category) == (0, "Bubble Sort", "comparison-sorting")
    assert set(task.levels) == {"easy", "medium", "hard"}
    assert task.constraints[0].name == "format" and task.constraints[0].severity == "critical"
    assert task.actions[0].example.startswith("cmp ")
    assert set(task.example["answer"]) == set(task.answer)


@pytest.mark.parametrize("name", ["buble-sort", "bubblesort", "Bubble Sort"])
def test_an_unknown_task_is_a_key_error_with_the_nearest_name(name: str) -> None:
    for call in (
        lambda: prime_bench.task(name),
        lambda: Instance(name),
        lambda: prime_bench.grammar(name),
        lambda: prime_bench.instances(name),
        lambda: prime_bench.create_dataset(name),
    ):
        with pytest.raises(KeyError, match=r"did you mean `bubble-sort`\? `prime_bench.tasks\(\)` names all"):
            call()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"difficulty": "simple"}, ValueError, "difficulty: .*easy, medium or hard"),
        ({"difficulty": 3}, TypeError, "difficulty: expected a str, not int"),
        ({"index": 1000}, ValueError, "index: 1000 is not between 0 and 999"),
        ({"index": -1}, ValueError, "index: -1 is not between"),
        ({"index": "7"}, TypeError, "index: expected an int, not str"),
        ({"index": True}, TypeError, "index: expected an int, not bool"),
        ({"base_seed": 1 << 64}, ValueError, "base_seed: "),
        ({"base_seed": 1.5}, TypeError, "base_seed: expected an int, not float"),
    ],
)
def test_bad_names_of_instances_name_the_argument(arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Instance("bubble-sort", **arguments)


def test_other_bad_values_name_the_argument() -> None:
    for call, message in (
        (lambda: prime_bench.tasks(category="sorts"), "category: "),
        (lambda: prime_bench.instances("bubble-sort", start=-1), "start: -1 is negative"),
        (lambda: prime_bench.instances("bubble-sort", count=1001), "index: 1000"),
        (lambda: prime_bench.instances("bubble-sort", "mild", count=0), "difficulty: "),
        (lambda: prime_bench.grammar("bubble-sort", "yacc"), "form: .*gbnf, regex or lark"),
        (lambda: Instance("bubble-sort").prompt("terse"), "style: "),
        (lambda: Instance("n-queens").prompt("sorting"), "style: sorting is for sorts, and n-queens is not one"),
        (lambda: Instance("n-queens").prompt(without=["colour"]), "without: unknown component"),
        (lambda: Instance("n-queens").prompt("baseline", ["format"]), "without: goes with the structured"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_instances_are_those_of_the_benchmark(manifest: dict) -> None:
    """Writes the benchmark's files again; their digests were recorded by the program."""
    for slug in ("bubble-sort", "n-queens", "long-division", "dijkstra", "24-game"):
        task, digest = prime_bench.task(slug), hashlib.sha256()
        for rank, level in enumerate(("easy", "medium", "hard")):
            for index, instance in enumerate(prime_bench.instances(slug, level)):
                line = {
                    "id": instance.id,
                    "task": slug,
                    "task_id": task.id,
                    "category": task.category,
                    "difficulty": level,
                    "index": index,
                    "seed": 42_000_000 + task.id * 10_000 + rank * 1_000 + index,
                    "input": instance.input,
                    "answer": instance.answer(),
                    "steps": instance.reference_steps(),
                }
                digest.update(json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        assert digest.hexdigest() == manifest["files"][f"{slug}.jsonl"]["sha256"], slug


def test_instances_pickle_copy_and_compare() -> None:
    named = Instance("dijkstra", "medium", 3, 7)
    own = Instance.from_input("bubble-sort", {"a": [3, 1, 2]})
    for instance in (named, own):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(instance, protocol))
            assert again == instance and hash(again) == hash(instance) and again.id == instance.id
        assert copy.copy(instance) is instance and copy.deepcopy(instance) is instance
    assert named != own and named != "dijkstra" and len({named, own, Instance("dijkstra", "medium", 3, 7)}) == 2
    assert (named.task, named.difficulty, named.index, named.base_seed) == ("dijkstra", "medium", 3, 7)
    assert (own.id, own.difficulty, own.index, own.base_seed) == (None, None, None, None)
    assert repr(named) == "<Instance dijkstra/medium/003 of base seed 7>"


def test_an_input_of_ones_own_is_checked() -> None:
    own = Instance.from_input("bubble-sort", '{"a": [3, 1, 2]}')
    assert own.input == {"a": [3, 1, 2]} and own.answer()["sorted"] == [1, 2, 3]
    assert own.accepts(own.answer()) and not own.accepts({"sorted": [3, 2, 1]}) and not own.accepts(None)
    for given, message in (
        ({}, "missing field `a`"),
        ({"a": "x"}, "`a`"),
        ({"a": [1, 2], "b": 1}, "unknown field `b`"),
        ("{", "input: "),
        ({"a": [1 << 70]}, "more than 64 bits"),
        ({"a": [float("nan")]}, "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            Instance.from_input("bubble-sort", given)
    for wrong in ({1: 2}, {"a": object()}, object()):
        with pytest.raises(TypeError, match="input: expected"):
            Instance.from_input("bubble-sort", wrong)
    nested: list = []
    nested.append(nested)
    with pytest.raises(RecursionError, match="input: "):
        Instance.from_input("bubble-sort", {"a": nested})


def test_an_input_whose_reference_is_too_long_is_refused() -> None:
    tower = Instance.from_input("tower-of-hanoi", {"n": 22, "from": 0, "to": 2})
    for call in (
        tower.answer,
        tower.reference,
        lambda: tower.accepts({}),
        lambda: prime_bench.judge("<answer>{}</answer>", tower),
    ):
        with pytest.raises(ValueError, match="more than 2097152 steps"):
            call()


def test_hidden_input_is_in_no_prompt() -> None:
    maze = Instance("blind-maze")
    hidden = prime_bench.task("blind-maze").hidden
    assert hidden and not set(hidden) & set(maze.visible_input) and set(hidden) <= set(maze.input)
    assert all(f'"{field}"' not in maze.prompt() for field in hidden)


def test_prompts_ask_for_what_the_judge_reads() -> None:
    prompt = Instance("bubble-sort").prompt()
    assert "<actions>" in prompt and "<answer>" in prompt
    assert "CONSTRAINTS:" in prompt and "CONSTRAINTS:" not in Instance("bubble-sort").prompt(without=["constraints"])
    assert len(Instance("bubble-sort").prompt("baseline")) < len(prompt)


@pytest.mark.parametrize("slug", SLUGS)
def test_grammars_accept_the_reference_and_refuse_others(slug: str) -> None:
    task = prime_bench.task(slug)
    expression, parser = re.compile(task.grammar("regex")), lark.Lark(task.grammar("lark"))
    assert task.grammar().startswith("root ::= action\naction ::= ")
    for line in Instance(slug).reference()[:40]:
        assert expression.fullmatch(line), line
        parser.parse(line)
    for line in ("", "\n", "¿99?", "cmp 0 1 2 3 4 5 6\x00"):
        assert not expression.fullmatch(line), line
        with pytest.raises(lark.exceptions.LarkError):
            parser.parse(line)


def test_the_curriculum_is_the_paper_s() -> None:
    phases = prime_bench.curriculum()
    assert [(phase.first_epoch, phase.last_epoch) for phase in phases] == [(1, 5), (6, 15), (16, 30)]
    assert [phase.difficulties for phase in phases] == [("easy",), ("easy", "medium"), ("easy", "medium", "hard")]
