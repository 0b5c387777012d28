"""The benchmark in the LM Evaluation Harness and in Inspect, on a data set as exported: `evaluation.py EXECUTABLE`.

The model answers with outputs that are right, wrong or neither; both must find of each what `bench check` finds.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import datasets
from inspect_ai import eval as inspect_eval
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
from outputs import checked, export, output

from prime_bench import Instance, StepEnv
from prime_bench.dataset import instance_of
from prime_bench.integrations import verl
from prime_bench.integrations.inspect_ai import prime_bench

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import Daemon, ask, finished, program  # noqa: E402
from harness.client import text as text_of  # noqa: E402

TASKS = ("bubble-sort", "n-queens")
LEVELS = ("easy", "medium")


def load(folder):
    """All rows by task and level, and the same through the configuration of all tasks."""
    rows = {}
    for task in TASKS:
        for level in LEVELS:
            rows[task, level] = list(datasets.load_dataset(folder, task, split=level))
            assert [row["task"] for row in rows[task, level]] == [task] * 12

    both = datasets.load_dataset(folder, split="easy")
    assert sorted(both["id"]) == sorted(row["id"] for task in TASKS for row in rows[task, "easy"])
    return rows


class Scripted(LM):
    """Answers each row's prompt with the output that is planned for it. Two instances may have the same prompt."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = outputs

    def generate_until(self, requests, disable_tqdm=False):
        assert all(request.arguments[0] == request.doc["prompt"] for request in requests)
        return [self.outputs[request.doc["id"]] for request in requests]

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError


def harness(folder, outputs, expected):
    group = Path(folder) / "lm-eval"
    command = [sys.executable, "-m", "prime_bench.integrations.lm_eval", folder, str(group)]
    subprocess.run(command, check=True, capture_output=True)
    wrong = subprocess.run([*command[:3], "/nowhere", str(group)], capture_output=True, text=True)
    assert wrong.returncode == 2 and "bench export" in wrong.stderr, wrong

    found = simple_evaluate(
        Scripted(outputs), tasks=["prime_bench"], task_manager=TaskManager(include_path=str(group)), bootstrap_iters=0
    )

    seen = 0
    for samples in found["samples"].values():
        for sample in samples:
            stages = expected[sample["doc"]["id"]]
            assert {stage: sample[stage] for stage in ("format", "syntax", "semantic")} == {
                stage: stages[stage] for stage in ("format", "syntax", "semantic")
            }, sample
            assert sample["acc"] == stages["result"], sample
            seen += 1
    assert seen == len(expected) == 48

    mean = found["groups"]["prime_bench"]["acc,none"]
    assert abs(mean - sum(stages["result"] for stages in expected.values()) / 48) < 1e-9, mean


def inspect(folder, rows, outputs, expected):
    for task in TASKS:
        planned = [outputs[row["id"]] for row in rows[task, "easy"]]
        answers = [ModelOutput.from_content("mockllm", text) for text in planned]
        for answer in answers:
            # It would count them with a tokenizer from the network.
            answer.usage = ModelUsage()
        model = get_model("mockllm/model", custom_outputs=answers)
        (log,) = inspect_eval(
            prime_bench(task=task, difficulty="easy", dataset=folder), model=model, log_dir=f"{folder}/logs", max_samples=1,
            max_connections=1, display="none",
        )

        assert log.status == "success", log.error
        log = read_eval_log(log.location)
        assert len(log.samples) == 12

        for sample in log.samples:
            value = sample.scores["prime"].value
            assert {stage: value[stage] for stage in expected[sample.id]} == expected[sample.id], (sample.id, value)
            sources = [event.source for event in sample.events if event.event == "info"]
            assert sources.count("prime-bench") == min(len(sample.scores["prime"].metadata["step_rewards"]), 200)

        (metric,) = [score.metrics["accuracy"] for score in log.results.scores if score.name == "result"]
        assert abs(metric.value - sum(expected[sample.id]["result"] for sample in log.samples) / 12) < 1e-9

    alone = prime_bench(task="bubble-sort", limit=12).dataset
    of_the_folder = prime_bench(task="bubble-sort", dataset=folder).dataset
    assert [sample.input for sample in alone] == [sample.input for sample in of_the_folder]


def training(executable, work):
    """The data of `prime-agents data`, as trainers load it."""
    chosen = ["--task", "bubble-sort", "--task", "n-queens", "--difficulty", "easy", "--instances", "3"]
    conversations = {"sft": ["prompt", "completion"], "dpo": ["prompt", "chosen", "rejected"], "grpo": ["prompt"]}
    for kind, columns in conversations.items():
        folder = f"{work}/{kind}"
        subprocess.run([executable, "data", kind, "--out", folder, *chosen], check=True, capture_output=True)
        rows = datasets.load_dataset(folder, split="train")
        assert set(rows["task"]) == {"bubble-sort", "n-queens"} and set(rows["phase"]) == {1}, kind
        for row in rows:
            for column in columns:
                (message,) = row[column]
                assert message["role"] == ("user" if column == "prompt" else "assistant") and message["content"], row

    for row in rows:
        # As verl, OpenRLHF and TRL find the instance.
        assert row["reward_model"]["ground_truth"] == row["label"] and row["data_source"] == "prime-bench"
        instance = instance_of(row)
        assert instance == instance_of(json.loads(row["label"])) == instance_of(row["extra_info"])
        assert instance.prompt() == row["prompt"][0]["content"]
        text = output(0, {"task": row["task"], "input": instance.input, "answer": json.dumps(instance.answer())})
        found = verl.compute_score(row["data_source"], text, row["reward_model"]["ground_truth"], row["extra_info"])
        assert found["acc"] == 1.0 and found["score"] > 10, found

    refused = subprocess.run([executable, "data", "sft", "--base-seed", "42", "--out", folder], capture_output=True, text=True)
    assert refused.returncode == 2 and "benchmark" in refused.stderr, refused


def rewards(executable):
    """The rewards of a run's steps in a daemon's trace are those of a step environment here, to the last bit."""
    flawed = ("agents.executor.implementation=scripted", "agents.executor.error_rate=0.1")
    with Daemon(executable, *flawed) as daemon:
        for task in TASKS:
            body = {"task": task, "index": 1, "fanout": 1, "max_rounds": 1}
            run = ask(daemon.address, "POST", "/v1/runs", body)["id"]
            finished(daemon.address, run)

            head, *events = map(json.loads, text_of(daemon.address, f"/v1/runs/{run}/trace").splitlines())
            steps = [event for event in events if event["event"] == "step"]
            env = StepEnv(Instance.from_input(head["spec"]["task"], head["spec"]["input"]), reject_violations=True)
            assert [env.step(step["action"])[1] for step in steps] == [step["reward"]["total"] for step in steps]

            (ended,) = (event for event in events if event["event"] == "trajectory_ended")
            assert env.correct() and ended["reward"]["total"] > 10
            # With no error among the steps, only one kind of reward would have been compared.
            assert task != "bubble-sort" or sum(step["score"] > 0 for step in steps) >= 3


def main(executable):
    with tempfile.TemporaryDirectory() as work:
        # Another data set at the same place, which must not be seen again.
        export(executable, f"{work}/prime-bench", "24-game", *TASKS)
        assert len(datasets.load_dataset(f"{work}/prime-bench", split="easy")) == 36
        folder = export(executable, f"{work}/prime-bench", *TASKS)
        rows = load(folder)
        training(executable, work)
        print("ok  datasets")
        outputs = {row["id"]: output(place, row) for level in rows.values() for place, row in enumerate(level)}
        expected = checked(executable, work, outputs)
        assert {stages["result"] for stages in expected.values()} == {0.0, 1.0}
        harness(folder, outputs, expected)
        print("ok  lm-eval")
        inspect(folder, rows, outputs, expected)
        print("ok  inspect")
        rewards(executable)
        print("ok  rewards over HTTP")


if __name__ == "__main__":
    main(program(sys.argv[1]))
