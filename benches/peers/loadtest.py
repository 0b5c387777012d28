"""Reads the report of `prime-agents loadtest --output json` (crates/loadtest/src/report.rs) as the phases of a row."""

import json

from rows import MANY

# Version of the reports read here.
FORMAT = 2
PHASES = {1: "seq", 64: "shared64", 1000: "shared1000", 10_000: MANY}


class NotAReport(Exception):
    """The output cannot be read; the message says why."""


def arguments(options, seconds):
    """The command line after the executable's name; each point is measured for `seconds`."""
    counts = ",".join(str(count) for count in PHASES)
    words = ["loadtest", "--mode", "ring", "--trajectories", counts, "--duration", f"{seconds:g}s"]
    return [*words, "--output", "json", *options]


def read(text):
    """The phases of a report, and the version of prime-agents that made it."""
    try:
        report = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotAReport(f"prime-agents loadtest printed no JSON: {error}") from error
    version = report.get("form") if isinstance(report, dict) else None
    if version != FORMAT:
        raise NotAReport(f"report format {version} instead of {FORMAT}: build prime-agents from this checkout")
    try:
        return {name: phase for name, phase in map(_phase, report["points"]) if name}, report["version"]
    except (KeyError, TypeError) as error:
        raise NotAReport(f"the report lacks a field: {error}") from error


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
