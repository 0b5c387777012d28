"""scripts/train-adapters, with stand-ins for the program and for Python."""

import importlib.machinery
import importlib.util
import json
import pathlib
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "scripts/train-adapters"
PLAN = """
[base]
name = "Tiny"
file = "tiny.gguf"
licence = "Apache-2.0"

[defaults]
difficulties = ["easy"]
instances = 3
steps_per_instance = 2
base_seed = 1000
recipe = { rank = 4, seed = 5 }

[[adapters]]
name = "one"
tasks = ["union-find"]

[[adapters]]
name = "two"
tasks = ["n-queens", "sudoku"]
recipe = { rank = 8 }
"""
PAGE = "# Adapters\n<!-- adapters: scripts/train-adapters -->\n<!-- end of adapters -->\nEnd.\n"
# Notes its arguments; as a trainer it writes a card, or stops like one that got a signal.
STAND_IN = """#!{python}
import json, pathlib, sys
given = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(given) + "\\n")
value = lambda name: pathlib.Path(given[given.index(name) + 1])
if "prime_lora" in given and ("sft" in given or "grpo" in given):
    if pathlib.Path({stop!r}).exists():
        sys.exit(130)
    out = value("--out")
    out.mkdir(parents=True, exist_ok=True)
    recipe = {{"rank": int(str(value("--rank"))), "batch": 2, "accumulation": 1}}
    card = {{"role": "executor", "steps": 5, "tokens": 1000, "cpu_seconds": 7, "recipe": recipe}}
    card |= {{"exact": {{"right": 3, "of": 4}}, "exact_of_base": {{"right": 0, "of": 4}}}}
    if "grpo" in given:
        card["exact_of_start"] = {{"right": 1, "of": 4}}
    (out / "card.json").write_text(json.dumps(card))
if "export" in given and "prime_lora" in given:
    value("--out").write_bytes(b"GGUF")
"""


@pytest.fixture
def queue(tmp_path, monkeypatch):
    loader = importlib.machinery.SourceFileLoader("train_adapters", str(SCRIPT))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("train_adapters", loader)
    )
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    folder = tmp_path / "adapters"
    folder.mkdir()
    (folder / "adapters.toml").write_text(PLAN)
    (folder / "README.md").write_text(PAGE)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(
        STAND_IN.format(
            python=sys.executable, log=str(tmp_path / "log"), stop=str(tmp_path / "stop")
        )
    )
    stand_in.chmod(0o755)
    monkeypatch.setattr(module, "FOLDER", folder)

    def run(*more):
        given = ["--program", stand_in, "--python", stand_in, "--models", tmp_path]
        given += ["--work", tmp_path / "work", *more]
        monkeypatch.setattr(sys, "argv", ["train-adapters", *map(str, given)])
        module.main()
        log = tmp_path / "log"
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return calls

    run.folder = folder
    return run


def test_missing_adapters_are_made_and_finished_ones_are_not(queue):
    calls = queue()
    assert [call[0] for call in calls] == ["data", "-W", "-W", "-W"] * 2
    assert calls[4][:2] == ["data", "sft"] and calls[4].count("--task") == 2
    assert calls[1][calls[1].index("--rank") + 1] == "4"
    # A recipe of its own changes the default one.
    assert calls[5][calls[5].index("--rank") + 1] == "8"
    assert calls[5][calls[5].index("--seed") + 1] == "5"
    assert (queue.folder / "two.gguf").read_bytes() == b"GGUF"
    card = json.loads((queue.folder / "one.json").read_text())
    assert card["base"] == "Tiny" and card["tasks"] == ["union-find"] and card["steps"] == 5
    # The digest of the four bytes GGUF.
    assert card["sha256"].startswith("b83633aa78534479")

    page = (queue.folder / "README.md").read_text()
    row = "| one | executor | union-find | 4 | 10 | 1,000 | 7 "
    row += "| 0 of 4: 0.0 % (0.0–49.0) | 3 of 4: 75.0 % (30.1–95.4) |"
    assert row in page and page.endswith("<!-- end of adapters -->\nEnd.\n")
    assert queue() == []


def test_reinforcement_starts_from_a_finished_adapter(queue):
    plan = queue.folder / "adapters.toml"
    supervised = plan.read_text()
    third = '\n[[adapters]]\nname = "three"\ntasks = ["sudoku"]\nstart = "one"\n'
    plan.write_text(supervised.replace('name = "one"', 'name = "none"') + third)
    with pytest.raises(SystemExit, match="starts from one, which is not trained yet"):
        queue("--only", "three")

    plan.write_text(supervised + third)
    calls = queue()
    trained = next(call for call in calls if "grpo" in call)
    assert trained[trained.index("--start") + 1] == str(queue.folder / "one.gguf")
    assert json.loads((queue.folder / "three.json").read_text())["start"] == "one"
    # One of the four was right before, as the stand-in's card says.
    assert "| 1 of 4: 25.0 % (4.6–69.9) | 3 of 4" in (queue.folder / "README.md").read_text()


def test_a_changed_recipe_is_trained_again(queue):
    queue()
    plan = queue.folder / "adapters.toml"
    plan.write_text(plan.read_text().replace("rank = 8", "rank = 2"))
    calls = queue()
    assert len(calls) == 4 and calls[0][calls[0].index("--task") + 1] == "n-queens"


def test_a_stopped_training_stops_the_queue_and_leaves_nothing(queue, tmp_path):
    (tmp_path / "stop").touch()
    with pytest.raises(SystemExit) as ended:
        queue()
    assert ended.value.code == 130
    assert not list(queue.folder.glob("*.gguf")) and not list(queue.folder.glob("*.json"))
    (tmp_path / "stop").unlink()
    queue("--only", "two")
    assert [path.name for path in queue.folder.glob("*.gguf")] == ["two.gguf"]


def test_unknown_names_and_a_missing_base_are_refused(queue, tmp_path):
    with pytest.raises(SystemExit, match="adapters.toml has no three"):
        queue("--only", "three")
    (tmp_path / "tiny.gguf").unlink()
    with pytest.raises(SystemExit, match="tiny.gguf is missing: scripts/test-models"):
        queue()
