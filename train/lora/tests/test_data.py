"""What samples are made of: data sets, roles, what is held out, what is refused."""

import dataclasses
import json

import pyarrow
import pyarrow.parquet
import pytest
import tiny
from prime_lora import cli, estimate, export, grpo, roles, rows, sft
from prime_lora.base import Base
from prime_lora.errors import InputError
from prime_lora.recipe import PRESETS, Recipe, Reinforcement

NAME = {"task": "union-find", "difficulty": "easy", "index": 3, "base_seed": 1000}


def chat(asked, answer):
    return {
        "prompt": [{"role": "user", "content": asked}],
        "completion": [{"role": "assistant", "content": answer}],
    }


def written(folder, found):
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(found), folder / "rows.parquet")
    return folder


def test_the_digest_is_fnv_1a():
    # The reference vectors of the function's authors.
    assert rows.fnv1a(b"") == 0xCBF29CE484222325
    assert rows.fnv1a(b"a") == 0xAF63DC4C8601EC8C
    assert rows.fnv1a(b"foobar") == 0x85944171F73967E8


def test_what_is_held_out_is_decided_by_the_input_alone():
    found = [{**NAME, "index": index, "base_seed": seed} for seed in (1, 2) for index in range(3)]
    learnt, kept = rows.split(found, lambda row: row["index"] == 1)
    assert [row["index"] for row in learnt] == [0, 2, 0, 2]
    assert [row["base_seed"] for row in kept] == [1, 2]


def test_graded_samples_are_spread_over_tasks():
    made = [rows.Sample((1,), (2,), "a")] * 90 + [rows.Sample((1,), (2,), "b")] * 10
    chosen = rows.spread(made, 20)
    assert [sample.task for sample in chosen] == ["a"] * 10 + ["b"] * 10
    assert rows.spread(made[:5], 20) == made[:5]


def test_a_sample_that_is_too_long_is_refused_not_cut(base):
    tokenizer = base.tokenizer()
    long = chat("x" * 100, "1")
    count = len(rows.sample(tokenizer, long))
    assert len(rows.samples(tokenizer, [long], count)) == 1
    with pytest.raises(InputError, match=f"has {count} tokens, the limit is {count - 1}"):
        rows.samples(tokenizer, [long], count - 1)


def test_a_template_that_opens_thinking_is_refused(tmp_path):
    template = tiny.TEMPLATE.replace(
        "assistant\n' }}{% endif %}", "assistant\n<think>' }}{% endif %}"
    )
    base = Base.at(tiny.write(tmp_path / "thinking.gguf", template))
    with pytest.raises(InputError, match="renders an answer unlike the prompt"):
        rows.sample(base.tokenizer(), chat("a", "b"))


def test_models_that_cannot_chat_are_refused(tmp_path):
    base = Base.at(tiny.write(tmp_path / "bare.gguf", template=None))
    with pytest.raises(InputError, match="no chat template"):
        base.tokenizer()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"PK"), "is not a GGUF file"),
        (lambda path: path.write_bytes(b"GGUF\3\0"), "cannot be read as a GGUF file"),
        (lambda path: path.mkdir(), "neither a GGUF file nor a folder with a config.json"),
        (lambda path: None, "neither a GGUF file nor a folder"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path, make, message):
    make(tmp_path / "model")
    with pytest.raises(InputError, match=message):
        Base.at(tmp_path / "model")


def test_data_without_completions_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no Parquet file"):
        rows.read(tmp_path)
    folder = written(tmp_path / "grpo", [{"prompt": "a"}])
    with pytest.raises(InputError, match="has no `completion`"):
        rows.chats(rows.read(folder), folder)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn/a.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot be read"):
        rows.read(tmp_path / "torn")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 0}, "rank is 0: it must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: it must be above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"targets": ()}, "targets is empty"),
    ],
)
def test_recipes_have_ranges(change, message):
    with pytest.raises(InputError, match=message):
        Recipe(**change)
    with pytest.raises(InputError, match="at least 2"):
        Reinforcement(group=1)


def test_the_papers_preset_has_the_papers_values():
    paper = PRESETS["paper"]
    assert (paper.learning_rate, paper.warmup, paper.weight_decay) == (1e-5, 1000, 0.01)
    assert paper.batch * paper.accumulation == 256 and paper.steps == 50_000
    how = Reinforcement()
    assert (how.group, how.clip, how.kl, how.temperature, how.top_p) == (8, 0.2, 0.01, 0.7, 0.95)


def test_a_model_too_large_for_the_machine_is_refused_with_numbers():
    with pytest.raises(InputError, match=r"about 60.0 GB of memory and 8.5 hours, but 16.0 GB"):
        estimate.check(60_000_000_000, 8.5, "cpu", forced=False, free=16_000_000_000)
    said = estimate.check(60_000_000_000, 8.5, "cpu", forced=True, free=16_000_000_000)
    assert said == "about 60.0 GB of memory and 8.5 hours; 16.0 GB are free"


def test_the_estimate_counts_the_adapters_weights(base):
    # A layer: q 32+32, k and v 32+16 each, o 32+32, gate, up and down 32+64 each: 512; rank 4, two
    # layers.
    recipe = dataclasses.replace(PRESETS["default"], rank=4)
    assert estimate.trained_parameters(base.config(), recipe) == 4096


def test_verifier_samples_join_labels_with_prompts(tmp_path, monkeypatch):
    prime_bench = pytest.importorskip("prime_bench")
    given = json.dumps(prime_bench.Instance(*NAME.values()).input)
    found = chat("union-find find 8\n", "root 8") | NAME | {"step": 2}
    written(tmp_path / "prompts", [found])
    label = {name: NAME[name] for name in ("task", "difficulty", "index")} | {"input": given}
    written(
        tmp_path / "labelled",
        [
            label | {"step": 2, "line": "root 8", "label": "right"},
            label | {"step": 2, "line": "root 9", "label": "wrong"},
            # A state that lessons leave out.
            label | {"step": 3, "line": "root 9", "label": "wrong"},
        ],
    )
    made = roles.verifier_rows(tmp_path)
    asked = [(row["prompt"][0]["content"], row["completion"][0]["content"]) for row in made]
    assert asked == [
        ("check union-find find 8\nroot 8\n", "1"),
        ("check union-find find 8\nroot 9\n", "0"),
    ]


def step(depth, action, score, decision, trajectory=0):
    return {
        "event": "step",
        "round": 1,
        "trajectory": trajectory,
        "depth": depth,
        "action": action,
        "score": score,
        "violations": ["true-root"] if score else [],
        "decision": decision,
    }


def trace(folder, events, name="union-find.easy.3.1000.jsonl"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def test_coordinator_samples_show_what_the_coordinator_saw(tmp_path):
    prime_bench = pytest.importorskip("prime_bench")
    instance = prime_bench.Instance(*NAME.values())
    first, second = instance.reference()[:2]
    events = [
        {"event": "started"},
        step(0, first, 0.0, "proceed"),
        step(1, "root 0", 0.2, "retry"),
        step(1, "root 1", 0.9, "backtrack"),
        step(1, "root 2", 0.9, "backtrack", trajectory=1) | {"depth": 0},
        step(1, "root 3", 0.2, "retry"),
        step(1, second, 0.0, "proceed"),
    ]
    made = roles.coordinator_rows(trace(tmp_path / "traces", events))
    answers = [row["completion"][0]["content"] for row in made]
    assert answers == ["Retry", "Backtrack", "Backtrack", "Retry"]
    last = made[3]["prompt"][0]["content"]
    assert f"Recent steps:\n1. {first}\n\nPROPOSED STEP: root 3\n" in last
    assert "  Violation score V: 0.2\n  Violated constraints: true-root\n" in last
    assert "  Retries in this state so far: 1 of 2\n  Rejected in this state so far: 1\n" in last
    # The other trajectory is still in its first state.
    assert "Recent steps" not in made[2]["prompt"][0]["content"]


def test_thresholds_of_the_runs_are_shown(tmp_path):
    pytest.importorskip("prime_bench")
    folder = trace(tmp_path / "traces", [step(0, "root 1", 0.9, "retry")])
    note = folder / "thresholds.json"
    note.write_text('{"tau_soft": 0.5, "tau_hard": 1.0, "retries_max": 4}')
    (row,) = roles.coordinator_rows(folder)
    asked = row["prompt"][0]["content"]
    assert "  V up to 0.5: retry; after 4 retries it may be tolerated\n  V above 1.0: back" in asked
    note.write_text('{"tau_soft": 0.5}')
    with pytest.raises(InputError, match="must have tau_soft, tau_hard, retries_max"):
        roles.coordinator_rows(folder)


def test_traces_that_do_not_fit_are_refused(tmp_path):
    pytest.importorskip("prime_bench")
    folder = trace(tmp_path / "thresholds", [step(0, "root 1", 0.9, "retry")])
    with pytest.raises(InputError, match="jsonl:1: retry at V = 0.9: the run had other thresholds"):
        roles.coordinator_rows(folder)
    with pytest.raises(InputError, match="a step at depth 2 without its past"):
        roles.coordinator_rows(trace(tmp_path / "past", [step(2, "root 1", 0.9, "backtrack")]))
    with pytest.raises(InputError, match="its name must be"):
        roles.coordinator_rows(trace(tmp_path / "name", [], "trace.jsonl"))


def test_rewards_are_those_of_the_environment():
    pytest.importorskip("prime_bench")
    instance = ("union-find", "easy", 0, 42)
    # After two steps of its reference the instance asks for a link, as its page says.
    assert grpo.reward("12 and 2\nlink 12 2\n", instance, 2) == 1.0
    assert grpo.reward("root 9", instance, 2) < 0
    assert grpo.reward("", instance, 2) < 0


def test_grpo_takes_steps_with_rewards_of_each_group(base, tmp_path):
    pytest.importorskip("prime_bench")
    found = [
        chat(f"union-find {index}\n", "-") | NAME | {"index": index, "step": 0}
        for index in range(8)
    ]
    folder = written(tmp_path / "data", found)
    recipe = dataclasses.replace(PRESETS["default"], rank=2, batch=4, steps=3, warmup=0)
    how = Reinforcement(group=4, completion_tokens=4)
    card = grpo.train(base, [folder], recipe, how, tmp_path / "run", "cpu", report=False)
    assert card["steps"] == 3
    # A random model proposes nothing that can be applied.
    assert all(reward < 0 for reward in card["rewards"])
    assert (tmp_path / "run/adapter/adapter_model.safetensors").exists()
    assert card["exact"]["of"] == card["exact_of_base"]["of"] == 8 - card["prompts"]

    file = tmp_path / "first.gguf"
    export.write(tmp_path / "run/adapter", base.config(), file, name="first")
    second = grpo.train(
        base, [folder], recipe, how, tmp_path / "second", "cpu", start=file, report=False
    )
    assert second["exact_of_start"] == card["exact"]

    with pytest.raises(InputError, match="must be a multiple of the group, 3"):
        grpo.train(base, [folder], recipe, Reinforcement(group=3), tmp_path / "other", "cpu")

    # Another start is another run.
    with pytest.raises(InputError, match="another recipe, base or data"):
        first = tmp_path / "run/adapter"
        grpo.train(base, [folder], recipe, how, tmp_path / "run", "cpu", start=first)
    with pytest.raises(InputError, match="has no adapter_model.safetensors"):
        grpo.train(base, [folder], recipe, how, tmp_path / "run", "cpu", start=tmp_path)


def test_the_command_line_refuses_with_one_line(tmp_path, capsys):
    given = ["sft", "--base", str(tmp_path / "no"), "--data", "d", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ") and not (tmp_path / "out").exists()


def test_the_command_line_plans_trains_exports_and_checks(base, tmp_path, capsys):
    pytest.importorskip("prime_bench")
    found = [chat(f"union-find {n}\n", "root 1") | NAME | {"index": n} for n in range(12)]
    folder, out = written(tmp_path / "data", found), tmp_path / "run"
    files = ["--base", str(base.path)]
    given = ["sft", *files, "--data", str(folder), "--out", str(out), "--steps", "2"]

    def run(*given):
        with pytest.raises(SystemExit) as ended:
            cli.main(given)
        assert not ended.value.code
        return capsys.readouterr()

    assert " samples, 2 steps, " in run(*given, "--device", "cpu", "--plan").err
    assert not out.exists()
    run(*given, "--device", "cpu")
    card = json.loads((out / "card.json").read_text())
    assert card["role"] == "executor" and card["steps"] == 2
    assert card["samples"] + card["exact"]["of"] == 12
    adapter, file = str(out / "adapter"), str(tmp_path / "a.gguf")
    run("export", *files, "--adapter", adapter, "--out", file)
    checked = run("check", *files, "--adapter", adapter, "--gguf", file)
    assert json.loads(checked.out)["agrees"] is True


def test_sft_tells_roles_apart(base, tmp_path):
    folder = written(tmp_path / "data", [chat("a", "b") | NAME, chat("c", "d") | NAME])
    data = sft.read([folder], base.tokenizer(), PRESETS["default"], lambda row: False)
    assert len(data.train) == 2 and data.held_out == []
    with pytest.raises(InputError, match="every row is held out"):
        sft.read([folder], base.tokenizer(), PRESETS["default"], lambda row: True)
