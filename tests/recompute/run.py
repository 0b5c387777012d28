#!/usr/bin/env python3
"""Recomputes answers and step counts of generated instances, from their inputs alone.

    prime-agents bench generate --all --out bench
    python3 tests/recompute/run.py bench [--every N] [--task SLUG]

Every task has a function here that was written from its page, by another hand and in another way than the Rust code.
Standard library only. Exits 1 if any answer or step count differs, or a task has no function.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.setrecursionlimit(100_000)


def functions():
    """All tasks of all modules beside this one."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        if path.stem != "run":
            found.update(importlib.import_module(path.stem).TASKS)
    return found


def recompute(job):
    """The differences of one file, and how many lines were compared."""
    path, every = job
    recomputed = functions()
    differences = []
    compared = 0
    with open(path, encoding="utf-8") as lines:
        for number, text in enumerate(lines):
            line = json.loads(text)
            if line["task"] not in recomputed:
                return path.name, 0, [f"{line['task']}: has no function here"]
            if number % every:
                continue
            answer, steps = recomputed[line["task"]](line["input"])
            compared += 1
            if list(answer) != list(line["answer"]) or answer != line["answer"] or steps != line["steps"]:
                differences.append(
                    f"{line['id']}: {json.dumps(line['answer'])} in {line['steps']} steps, "
                    f"recomputed {json.dumps(answer)} in {steps}"
                )
    return path.name, compared, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="compare one line of so many")
    parser.add_argument("--task", help="only this task")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob(f"{arguments.task or '*'}.jsonl"))
    if not files:
        sys.exit(f"{arguments.folder}: no generated files there")
    total = 0
    bad = 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for name, compared, differences in pool.imap_unordered(recompute, [(file, arguments.every) for file in files]):
            total += compared
            bad += len(differences)
            for difference in differences[:3]:
                print(f"DIFFERS {difference[:600]}")
            if len(differences) > 3:
                print(f"DIFFERS {name}: {len(differences) - 3} more")
    print(f"{len(files)} tasks, {total} instances recomputed, {bad} differ")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
