"""Outputs to judge: some right, some wrong in each way, for rows of an exported data set."""

import json
import subprocess

from prime_bench import Instance


def output(place, row):
    """An output for a row; which kind, its place decides."""
    instance = Instance.from_input(row["task"], row["input"])
    lines, answer = instance.reference(), row["answer"]
    trace = "\n".join(lines)
    half = "\n".join(lines[: len(lines) // 2])
    return [
        f"<actions>\n{trace}\n</actions>\n<answer>\n{answer}\n</answer>",
        f"<actions>\n{half}\n</actions>\n<answer>\n{answer}\n</answer>",
        f"<actions>\n{trace}\n</actions>\n<answer>\n{{}}\n</answer>",
        f"<actions>\nnonsense\n{trace}\n</actions>\n<answer>\n{answer}\n</answer>",
        "I do not know.",
        f"```\n{trace}\n```\n```json\n{answer}\n```",
    ][place % 6]


def export(executable, folder, *tasks):
    """Exports two tasks at two levels; returns the folder."""
    chosen = [word for task in tasks for word in ("--task", task)]
    levels = ["--difficulty", "easy", "--difficulty", "medium", "--instances", "12"]
    command = [executable, "bench", "export", "--format", "parquet", "--out", folder, *chosen, *levels]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def checked(executable, folder, outputs):
    """What `bench check` says about outputs, by id: whether each stage is passed."""
    lines, details = f"{folder}/outputs.jsonl", f"{folder}/details.jsonl"
    with open(lines, "w") as file:
        file.writelines(json.dumps({"id": name, "output": text}) + "\n" for name, text in outputs.items())
    subprocess.run([executable, "bench", "check", lines, "--details", details], check=True, capture_output=True)
    with open(details) as file:
        judgements = [json.loads(line) for line in file]
    stages = ("format", "syntax", "semantic", "result")
    return {row["id"]: {stage: float(row[stage] == "passed") for stage in stages} for row in judgements}
