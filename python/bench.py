#!/usr/bin/env python3
"""What the package costs: steps per second, generating and scoring beside reasoning-gym, scoring many outputs, import, wheel.

Usage: target/python/venv/bin/python -I python/bench.py target/python/dist/*.whl, after `make python`. Without -I the sources beside
this file hide the wheel. Every figure is the median of some runs, with the lowest and the highest.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import reasoning_gym

import prime_bench

RUNS = 7


def timed(work: Callable[[], int]) -> list[float]:
    """Items per second, of each run."""
    rates = []
    for _ in range(RUNS):
        start = time.perf_counter()
        count = work()
        rates.append(count / (time.perf_counter() - start))
    return rates


def show(name: str, rates: list[float], unit: str = "/s") -> float:
    middle = statistics.median(rates)
    print(f"| {name} | {middle:,.0f} {unit} | {min(rates):,.0f} … {max(rates):,.0f} |", flush=True)
    return middle


def steps(slug: str, difficulty: str) -> None:
    instances = list(prime_bench.instances(slug, difficulty, count=50))
    traces = [instance.reference() for instance in instances]
    total = sum(map(len, traces))
    envs = [prime_bench.StepEnv(instance) for instance in instances]

    def single() -> int:
        for env, trace in zip(envs, traces, strict=True):
            env.reset()
            step = env.step
            for line in trace:
                step(line)
        return total

    count = 1_000
    many = [place % len(instances) for place in range(count)]
    shortest = min(map(len, traces))
    rows = [[traces[place][turn] for place in many] for turn in range(shortest)]
    vectors = {threads: prime_bench.VectorStepEnv([instances[place] for place in many], threads=threads) for threads in (1, 0)}

    def vector(threads: int) -> int:
        env = vectors[threads]
        env.reset()
        for lines in rows:
            env.step(lines)
        return count * shortest

    def rust() -> int:
        for instance, trace in zip(instances, traces, strict=True):
            prime_bench.composite_reward(trace, instance)
        return total

    core = show(f"{slug}/{difficulty}: Rust, a whole trace in one call (`composite_reward`)", timed(rust), "steps/s")
    for name, work in (
        ("`StepEnv`", single),
        ("`VectorStepEnv` of 1,000, one thread", lambda: vector(1)),
        ("`VectorStepEnv` of 1,000, all cores", lambda: vector(0)),
    ):
        rate = show(f"{slug}/{difficulty}: {name}", timed(work), "steps/s")
        print(f"|   of Rust's | {100 * rate / core:.0f} % | |")


def beside_reasoning_gym() -> None:
    """The tasks that both have, at sizes as near as their configurations come. Each run has a seed of its own, so that nothing
    is remembered."""
    pairs = [
        ("tower-of-hanoi", "tower_of_hanoi", {"min_disks": 3, "max_disks": 5, "max_pegs": 3}, 50, 5_000),
        ("n-queens", "n_queens", {}, 50, 5_000),
        ("sudoku", "sudoku", {}, 5, 300),
        ("gcd-euclidean", "gcd", {}, 5_000, 20_000),
        ("merge-sort", "number_sorting", {"min_numbers": 8, "max_numbers": 16}, 200, 10_000),
        ("24-game", "puzzle24", {}, 50, 5_000),
    ]
    seeds = iter(range(1_000_000))

    def theirs(name: str, config: dict[str, object], size: int) -> Callable[[], object]:
        return lambda: reasoning_gym.create_dataset(name, size=size, seed=next(seeds), **config)

    def ours(slug: str, size: int) -> Callable[[], object]:
        return lambda: prime_bench.create_dataset(slug, size, next(seeds))

    def one_by_one(make: Callable[[], object], size: int, scored: bool) -> Callable[[], int]:
        def work() -> int:
            data = make()
            for place in range(size):
                entry = data[place]  # type: ignore[index]
                if scored:
                    data.score_answer(entry["answer"], entry)  # type: ignore[attr-defined]
            return size

        return work

    def at_once(make: Callable[[], object], size: int, scored: bool) -> Callable[[], int]:
        def work() -> int:
            data = make()
            entries = data[:]  # type: ignore[index]
            if scored:
                data.score_answers([entry["answer"] for entry in entries], entries)  # type: ignore[attr-defined]
            return size

        return work

    for slug, name, config, few, many in pairs:
        for scored, doing in ((False, "generated"), (True, "generated and scored")):
            base = show(f"reasoning-gym `{name}`, {doing}", timed(one_by_one(theirs(name, config, few), few, scored)), "entries/s")
            for label, way in (("one by one", one_by_one), ("at once", at_once)):
                rate = show(f"prime-bench `{slug}`, {doing} {label}", timed(way(ours(slug, many), many, scored)), "entries/s")
                print(f"|   ratio | {rate / base:.1f} | |", flush=True)


def outputs() -> None:
    instances, texts = [], []
    for task in prime_bench.tasks():
        for instance in prime_bench.instances(task.slug, count=10):
            instances.append(instance)
            texts.append("<actions>\n" + "\n".join(instance.reference()) + "\n</actions>\n<answer>{}</answer>")
    times = -(-100_000 // len(texts))
    texts, instances = (texts * times)[:100_000], (instances * times)[:100_000]
    rates = []
    for threads in (1, 0):
        start = time.perf_counter()
        prime_bench.judge_many(texts, instances, threads=threads)
        rates.append(time.perf_counter() - start)
    print(f"| 100,000 outputs judged, one thread | {rates[0]:.1f} s | one run |")
    print(f"| 100,000 outputs judged, all cores | {rates[1]:.1f} s | one run |")


def imports() -> None:
    def run(code: str) -> list[float]:
        spent = []
        for _ in range(20):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-c", code], check=True)
            spent.append(1000 * (time.perf_counter() - start))
        return spent

    bare, ours = run("pass"), run("import prime_bench")
    cost = statistics.median(ours) - statistics.median(bare)
    print(f"| `import prime_bench` | {cost:.0f} ms | {min(ours):.0f} … {max(ours):.0f} ms with the interpreter's {min(bare):.0f} … {max(bare):.0f} |")


def main() -> None:
    wheel = Path(sys.argv[1])
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| what | median | lowest … highest |\n| --- | --- | --- |")
    imports()
    print(f"| wheel | {wheel.stat().st_size / 1e6:.1f} MB | |")
    steps("bubble-sort", "medium")
    steps("sudoku", "easy")
    beside_reasoning_gym()
    outputs()


if __name__ == "__main__":
    main()
