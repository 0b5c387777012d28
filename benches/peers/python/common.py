"""What the Python rows of `make peers` share: the step, its messages, the coordinator's bookkeeping, the laps.

A program is called as `PROGRAM VARIANT seq:STEPS shared:TRAJECTORIES:STEPS trios:TRAJECTORIES:STEPS` and prints one
line of JSON with one entry for each of these phases, as those in Rust do. `shared` sends all trajectories through one
executor, one verifier and one coordinator; with `trios` each has three actors, or a run of the framework, of its own.
"""

import asyncio
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass

PAYLOAD = "p" * 64


@dataclass
class Request:
    """Coordinator to executor: the next step is due."""

    trajectory: int
    step: int
    payload: str


@dataclass
class Action:
    """Executor to verifier."""

    trajectory: int
    step: int
    payload: str


@dataclass
class Verdict:
    """Verifier to coordinator."""

    trajectory: int
    step: int
    score: float
    payload: str


def execute(request):
    return Action(request.trajectory, request.step, request.payload)


def verify(action):
    """Nothing is violated."""
    return Verdict(action.trajectory, action.step, 0.0, action.payload)


@dataclass
class Spec:
    """A phase: how many trajectories, how many steps of each before the clock starts, how many that are timed."""

    kind: str
    trajectories: int
    warm: int
    steps: int

    @classmethod
    def parse(cls, word):
        kind, *numbers = word.split(":")
        if kind == "seq":
            steps = int(numbers[0])
            return cls(kind, 1, min(max(steps // 10, 5), 1000), steps)
        return cls(kind, int(numbers[0]), 1, int(numbers[1]))

    @property
    def name(self):
        return "seq" if self.is_timed else f"{self.kind}{self.trajectories}"

    @property
    def is_timed(self):
        """Each step is timed by itself."""
        return self.kind == "seq"

    @property
    def trios(self):
        return self.trajectories if self.kind == "trios" else 1


class Phase:
    """What the coordinators of a phase count, in the process that holds them; `done` is called at a lap's end."""

    def __init__(self, spec, done=lambda: None):
        self.spec = spec
        self.done = done
        self.target = self.live = self.last = 0
        self.samples = []

    def laps(self):
        """The first step of each lap and the one at which it ends: the warm-up, then the timed lap."""
        return (0, self.spec.warm), (self.spec.warm, self.spec.warm + self.spec.steps)

    def begin(self, target):
        self.samples = []
        self.live = self.spec.trajectories
        self.target = target
        self.last = time.perf_counter_ns()

    def decide(self, verdict):
        """The next request, or None where the trajectory's lap is over."""
        if self.spec.is_timed:
            now = time.perf_counter_ns()
            self.samples.append(now - self.last)
            self.last = now
        # It would backtrack; it never does here.
        if verdict.score > 0.5:
            return None
        step = verdict.step + 1
        if step >= self.target:
            self.live -= 1
            if self.live == 0:
                self.done()
            return None
        return Request(verdict.trajectory, step, verdict.payload)


class Stopwatch:
    """Wall time and processor time of this process, from its making on."""

    def __init__(self):
        self.cpu = self.cpu_now()
        self.start = time.perf_counter()

    @staticmethod
    def cpu_now():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    def measured(self, phase):
        """What is printed of a phase whose timed lap has just ended."""
        seconds = time.perf_counter() - self.start
        return measured(phase.spec, seconds, self.cpu_now() - self.cpu, phase.samples)


def measured(spec, seconds, cpu_seconds, samples):
    """What is printed of a phase; `cpu_seconds` is None where other processes took part."""
    steps = spec.trajectories * spec.steps
    entry = {"steps": steps, "seconds": round(seconds, 6), "steps_per_s": round(steps / seconds, 2)}
    if cpu_seconds is not None:
        entry["cpu_us_per_step"] = round(cpu_seconds * 1e6 / steps, 3)
    # The first sample spans the start of the lap.
    times = sorted(samples[1:] or samples)
    if spec.is_timed and times:
        for key, share in (("p50_us", 0.5), ("p99_us", 0.99), ("max_us", 1.0)):
            entry[key] = round(times[round((len(times) - 1) * share)] / 1000, 3)
    return entry


async def drive(phase, start, ended):
    """Both laps through actors that are wired: `start(trajectory, step)` begins one, `ended` is set at the end."""
    for first, target in phase.laps():
        ended.clear()
        phase.begin(target)
        stopwatch = Stopwatch()
        for trajectory in range(phase.spec.trajectories):
            waiting = start(trajectory, first)
            if waiting is not None:
                await waiting
        await ended.wait()
        entry = stopwatch.measured(phase)
    return entry


async def gather(phase, run):
    """Both laps where a trajectory is a coroutine, `run(trajectory, first step, step at which it ends)`."""
    for first, target in phase.laps():
        phase.begin(target)
        stopwatch = Stopwatch()
        await asyncio.gather(*(run(index, first, target) for index in range(phase.spec.trajectories)))
        entry = stopwatch.measured(phase)
    return entry


class Folder:
    """A folder of its own for what a variant writes, on the disk that the harness chose; removed at the end."""

    def __enter__(self):
        base = os.environ.get("PEERS_DATA") or tempfile.gettempdir()
        os.makedirs(base, exist_ok=True)
        self.path = tempfile.mkdtemp(prefix="steps-", dir=base)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def report(run, stop=lambda: None):
    """Does every phase of the command line with `run(variant, spec)` and prints what was measured. A phase that it has
    no answer to is left out. The process ends here, after `stop()`: some frameworks leave threads behind."""
    variant, phases = sys.argv[1], {}
    for word in sys.argv[2:]:
        spec = Spec.parse(word)
        entry = run(variant, spec)
        if asyncio.iscoroutine(entry):
            entry = asyncio.run(entry)
        if entry is not None:
            phases[spec.name] = entry
    print(json.dumps({"phases": phases}), flush=True)
    stop()
    os._exit(0)
