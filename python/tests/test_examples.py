"""The examples of tasks of one's own, and packages' problems as tasks: each has nothing wrong, and is solved."""

from __future__ import annotations

import importlib.util
import random
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import prime_bench
from prime_bench import StepEnv, Task

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(path: str) -> ModuleType:
    file = EXAMPLES / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def solved(task: Task, given: Any, proposals: int = 2000) -> StepEnv:
    """Searches with backtracking: draws among the choices, and goes back from where all of them break something."""
    draw = random.Random(7)
    stack = [(StepEnv(task.instance(given), reject_violations=True), None)]
    for _ in range(proposals):
        env, left = stack[-1]
        left = list(env.choices() or ()) if left is None else left
        if not left:
            stack.pop()
            continue
        line = left.pop(draw.randrange(len(left)))
        stack[-1] = (env, left)
        after = env.fork()
        _, _, terminated, _, info = after.step(line)
        if terminated:
            return after
        if not info["violations"]:
            stack.append((after, None))
    raise AssertionError(f"{task.name}: not solved by {proposals} proposals")


JOBS = {
    "jobs": {"cut": 2, "sew": 3, "dye": 1, "pack": 1},
    "after": {"sew": ["cut"], "pack": ["sew", "dye"]},
    "due": {"dye": 3, "pack": 7},
}
RULES = {"comm": ["x+y", "y+x"], "zero": ["x+0", "x"], "assoc": ["(x+y)+z", "x+(y+z)"]}


@pytest.mark.parametrize(
    ("path", "name", "given", "answer"),
    [
        ("tasks/schedule.py", "Schedule", JOBS, ["cut", "dye", "sew", "pack"]),
        ("tasks/adventure.py", "Adventure", None, {"goal": "crown", "room": "hall"}),
        ("tasks/rewriting.py", "Rewriting", {"rules": RULES, "left": "(0+a)+b", "right": "a+b"}, "a+b"),
    ],
)
def test_an_example_is_right_and_is_solved(path: str, name: str, given: Any, answer: Any) -> None:
    task = getattr(loaded(path), name)()
    given = task.example if given is None else given
    assert prime_bench.check(task, given, states=60), str(prime_bench.check(task, given, states=60))
    assert solved(task, given).answer == answer
    assert len((EXAMPLES / path).read_text(encoding="utf-8").splitlines()) < 80


def test_queries_are_executed_and_cannot_write(tmp_path: Path) -> None:
    task = loaded("tasks/sql.py").Sql()
    database = tmp_path / "shop.db"
    with sqlite3.connect(database) as shop:
        shop.execute("create table sales (customer text, price integer)")
        shop.executemany("insert into sales values (?, ?)", [("Ada", 3), ("Bob", 5), ("Ada", 4)])
    shop.close()
    before = database.read_bytes()
    given = {"database": str(database), "question": "Who has spent the most?", "expected": [["Ada"]]}

    env = StepEnv(task.instance(given))
    assert env.step("select name from sqlite_master")[0].endswith("[['sales']]")
    assert env.step("select name from sqlite_master")[4]["violations"] == ["repeat"]
    for wrong, part in [
        ("delete from sales", "not authorized"),
        ("attach database 'x' as y", "not authorized"),
        ("select missing from sales", "no such column"),
        ("with recursive n(i) as (select 1 union all select i from n) select count(*) from n", "interrupted"),
    ]:
        info = env.step(wrong)[4]
        assert info["refusal"] == "illegal" and part in info["reason"], info
    best = "select customer from sales group by customer order by sum(price)"
    assert env.fork().step(f"answer: {best} limit 1")[4]["violations"] == ["wrong"]
    assert env.step(f"answer: {best} desc limit 1")[4]["violations"] == [] and env.answer == [["Ada"]]
    assert database.read_bytes() == before


PACKAGES = [
    ("packages/rush_hour.py", "RushHour", "reasoning_gym", {"seed": 1, "index": 0, "moves": 4}),
    ("packages/futoshiki.py", "Futoshiki", "reasoning_gym", {"seed": 1, "index": 0}),
    ("packages/textarena_task.py", "TextArena", "textarena", {"game": "PegJump-v0", "seed": 1}),
]


@pytest.mark.parametrize(("path", "name", "package", "given"), PACKAGES)
@pytest.mark.filterwarnings("default")
def test_a_packages_problem_is_a_task_with_the_packages_verdict(path: str, name: str, package: str, given: Any) -> None:
    pytest.importorskip(package)
    task = getattr(loaded(path), name)()
    report = prime_bench.check(task, given, states=20)
    # Twenty states at random need not be an end.
    assert report, str(report)
    env = solved(task, given)
    assert env.instance.score(env.answer) == 1.0, "by the package's own rules"
    assert len((EXAMPLES / path).read_text(encoding="utf-8").splitlines()) < 80
    assert sys.modules[package] is not None
