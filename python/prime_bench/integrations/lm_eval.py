"""The tasks as a group of the LM Evaluation Harness, on a data set as `prime-agents bench export` writes it:

    python -m prime_bench.integrations.lm_eval DATASET OUT
    lm_eval --include_path OUT --tasks prime_bench --model …

Each task and level is `prime_bench_<task>_<level>`; `prime_bench` is all of them, with the mean over tasks of each metric.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prime_bench import Instance, judge

LEVELS = ("easy", "medium", "hard")
METRICS = ("acc", "format", "syntax", "semantic", "partial_credit")
TOKENS_MAX = 16_384
"""Most tokens of a completion, by default."""

TASK = """\
task: {name}
dataset_path: {dataset}
dataset_name: {task}
test_split: {level}
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: []
  max_gen_toks: {tokens_max}
  do_sample: false
process_results: !function prime_bench_results.process_results
metric_list:
{metrics}metadata:
  version: 1.0
"""

RESULTS = '''\
"""What `process_results` of the tasks beside this file is."""

from prime_bench.integrations.lm_eval import process_results

__all__ = ["process_results"]
'''


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """The judgement of an output: 1 for each stage that it passes (acc: the answer is right), and the share of reference
    states that its trace reaches."""
    judgement = judge(results[0], Instance.from_input(doc["task"], doc["input"]))
    return {
        "acc": float(judgement.correct),
        "format": float(judgement.format == "passed"),
        "syntax": float(judgement.syntax == "passed"),
        "semantic": float(judgement.semantic == "passed"),
        "partial_credit": judgement.partial_credit or 0.0,
    }


def exported(dataset: Path) -> list[tuple[str, str]]:
    """The tasks and levels of an exported data set, as its card names them.

    Raises ValueError for a folder that is none.
    """
    card = dataset / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    pairs = sorted(set(re.findall(rf"^ +- data/([a-z0-9-]+)/({'|'.join(LEVELS)})\.\w+$", text, flags=re.MULTILINE)))
    if not pairs:
        raise ValueError(f"{dataset}: not a data set of `prime-agents bench export --format parquet --out {dataset}`")
    return pairs


def write(dataset: Path, out: Path) -> list[str]:
    """Writes the files of the group and returns the names of its tasks."""
    pairs = exported(dataset)
    out.mkdir(parents=True, exist_ok=True)
    (out / "prime_bench_results.py").write_text(RESULTS)
    metrics = "".join(f"  - metric: {metric}\n    aggregation: mean\n    higher_is_better: true\n" for metric in METRICS)
    names = []
    for task, level in pairs:
        name = f"prime_bench_{task.replace('-', '_')}_{level}"
        names.append(name)
        fields = {"dataset": json.dumps(str(dataset.resolve())), "task": task, "level": level}
        text = TASK.format(name=name, metrics=metrics, tokens_max=TOKENS_MAX, **fields)
        (out / f"{name}.yaml").write_text(text)
    listed = "".join(f"  - {name}\n" for name in names)
    means = "".join(f"  - metric: {metric}\n    weight_by_size: false\n" for metric in METRICS)
    (out / "prime_bench.yaml").write_text(f"group: prime_bench\ntask:\n{listed}aggregate_metric_list:\n{means}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m prime_bench.integrations.lm_eval", description="Write a group of lm-eval.")
    parser.add_argument("dataset", type=Path, help="folder that prime-agents bench export has written")
    parser.add_argument("out", type=Path, help="folder for --include_path")
    arguments = parser.parse_args()
    try:
        names = write(arguments.dataset, arguments.out)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(f"{arguments.out}: {len(names)} tasks, and the group prime_bench")


if __name__ == "__main__":
    main()
