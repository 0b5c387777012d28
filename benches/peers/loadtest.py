"""Reads the report of `prime-agents loadtest --output json` (src/loadtest/report.rs) as the phases of a row."""

import json

from rows import MANY

# That of the reports that are understood here.
FORM = 1
PHASES = {1: "seq", 64: "shared64", 1000: "shared1000", 10_000: MANY}


class NotAReport(Exception):
    """What was printed cannot be read; the message says why."""


def arguments(options, seconds):
    """After the executable's name: each point is measured for so many seconds."""
    counts = ",".join(str(count) for count in PHASES)
    words = ["loadtest", "--mode", "ring", "--trajectories", counts, "--duration", f"{seconds:g}s"]
    return [*words, "--output", "json", *options]


def read(text):
    """The phases of a report, and the version of prime-agents that made it."""
    try:
        report = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotAReport(f"prime-agents loadtest printed no JSON: {error}") from error
    form = report.get("form") if isinstance(report, dict) else None
    if form != FORM:
        raise NotAReport(f"a report of form {form}, and form {FORM} is read here: build prime-agents of this checkout")
    try:
        return {name: phase for name, phase in map(_phase, report["points"]) if name}, report["version"]
    except (KeyError, TypeError) as error:
        raise NotAReport(f"the report lacks what its form has: {error}") from error


def _phase(point):
    phase = {
        "steps": point["steps"],
        "seconds": point["seconds"],
        "steps_per_s": point["steps_per_second"],
        "cpu_us_per_step": point["cpu_us_per_step"],
        "allocations_per_step": point["allocations_per_step"],
        "bytes_per_trajectory": point["bytes_per_trajectory"],
        "p50_us": point["latency"]["p50_us"],
        "p99_us": point["latency"]["p99_us"],
        "max_us": point["latency"]["max_us"],
    }
    return PHASES.get(point["trajectories"]), phase
