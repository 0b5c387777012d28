#!/usr/bin/env python3
"""What the package costs: steps per second, generating and scoring beside reasoning-gym, scoring many outputs, import, wheel.

Usage: target/python/venv/bin/python -I python/bench.py target/python/dist/*.whl, after `make python`. Without -I the sources beside
this file hide the wheel. Every figure is the median of some runs, with the lowest and the highest; what is compared runs by turns.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import reasoning_gym

import prime_bench

RUNS = 7
OUTPUTS = 100_000
Work = Callable[[], int]


def by_turns(works: Sequence[Work], runs: int = RUNS) -> list[list[float]]:
    """Items per second of each, in each run. They take turns, so that what else the machine does falls on all."""
    rates: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, found in zip(works, rates, strict=True):
            start = time.perf_counter()
            count = work()
            found.append(count / (time.perf_counter() - start))
    return rates


def spread(values: Sequence[float], digits: int = 0) -> str:
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def times(values: Sequence[float], base: Sequence[float]) -> str:
    """How many times as fast, run by run."""
    ratios = [value / against for value, against in zip(values, base, strict=True)]
    return spread(ratios, 0 if statistics.median(ratios) >= 10 else 2)


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def table(*heads: str) -> None:
    print()
    row(*heads)
    row(*["---"] * len(heads))


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

    works: list[Work] = [rust, single, lambda: vector(1), lambda: vector(0)]
    core, *others = by_turns(works)
    row(f"{slug}, {difficulty}", spread(core), *(f"{spread(rates)}: {times(rates, core)}" for rates in others))


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

    def one_by_one(make: Callable[[], object], size: int, scored: bool) -> Work:
        def work() -> int:
            data = make()
            for place in range(size):
                entry = data[place]  # type: ignore[index]
                if scored:
                    data.score_answer(entry["answer"], entry)  # type: ignore[attr-defined]
            return size

        return work

    def at_once(make: Callable[[], object], size: int, scored: bool) -> Work:
        def work() -> int:
            data = make()
            entries = data[:]  # type: ignore[index]
            if scored:
                data.score_answers([entry["answer"] for entry in entries], entries)  # type: ignore[attr-defined]
            return size

        return work

    for scored, doing in ((False, "generated"), (True, "generated and scored")):
        table(f"entries/s, {doing}", "reasoning-gym", "here, one by one", "times", "here, at once", "times")
        for slug, name, config, few, many in pairs:
            works = [
                one_by_one(theirs(name, config, few), few, scored),
                one_by_one(ours(slug, many), many, scored),
                at_once(ours(slug, many), many, scored),
            ]
            base, single, batch = by_turns(works)
            row(slug, spread(base), spread(single), times(single, base), spread(batch), times(batch, base))


def outputs() -> None:
    instances, texts = [], []
    for task in prime_bench.tasks():
        for instance in prime_bench.instances(task.slug, count=10):
            instances.append(instance)
            texts.append("<actions>\n" + "\n".join(instance.reference()) + "\n</actions>\n<answer>{}</answer>")
    repeated = -(-OUTPUTS // len(texts))
    texts, instances = (texts * repeated)[:OUTPUTS], (instances * repeated)[:OUTPUTS]

    def judged(threads: int) -> Work:
        def work() -> int:
            prime_bench.judge_many(texts, instances, threads=threads)
            return OUTPUTS

        return work

    for rates, on in zip(by_turns([judged(1), judged(0)], runs=5), ("one thread", "all cores"), strict=True):
        row(f"{OUTPUTS:,} outputs judged in four stages, {on}, s", spread([OUTPUTS / rate for rate in rates], 1))


def imports() -> None:
    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", code], check=True)
        return 1000 * (time.perf_counter() - start)

    pairs = [(run("pass"), run("import prime_bench")) for _ in range(20)]
    row("interpreter started, ms", spread([bare for bare, _ in pairs]))
    row("interpreter started, and `import prime_bench`, ms", spread([ours for _, ours in pairs]))


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    wheel = Path(sys.argv[1])
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores of {processor()}, load {load:.1f} at the start.")
    print(f"Median of {RUNS} runs (lowest–highest).")
    table("what", "")
    imports()
    row("wheel, MB", f"{wheel.stat().st_size / 1e6:.1f}")
    outputs()
    cores = ("`VectorStepEnv` of 1,000, one thread", "all cores")
    table("steps/s, and their ratio to Rust's", "Rust, a whole trace in one call (`composite_reward`)", "`StepEnv`", *cores)
    steps("bubble-sort", "medium")
    steps("sudoku", "easy")
    beside_reasoning_gym()
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
