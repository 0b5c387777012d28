"""Where the harness is, and what its programs print, made by hand."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "peers"))


def phase(steps_per_s, p50_us=1.0, **more):
    return {"steps_per_s": steps_per_s, "p50_us": p50_us, "p99_us": 2 * p50_us, "cpu_us_per_step": p50_us, **more}


def row(**phases):
    """A row's part of a round, from steps a second by phase."""
    return {"phases": {name: phase(rate) for name, rate in phases.items()}}


def point(trajectories, rate, p50_us):
    """A point of a report of `prime-agents loadtest`, as crates/loadtest/src/report.rs writes it."""
    us = {"mean_us": p50_us, "p50_us": p50_us, "p90_us": p50_us, "p99_us": 9.5, "p999_us": 9.75, "max_us": 80.0}
    return {
        "trajectories": trajectories,
        "steps": 1000,
        "seconds": 0.5,
        "steps_per_second": rate,
        "latency": us,
        "stages": [{"name": "judge", "is_work": False, "latency": us}],
        "coordination_share": None,
        "cpu_us_per_step": 0.75,
        "allocations_per_step": 2.5,
        "allocated_bytes_per_step": 300.0,
        "bytes_per_trajectory": 2048.0,
        "rate": None,
        "failures": 0,
        "histogram": "",
    }


def report(points, form=2):
    facts = {"form": form, "version": "0.1.0", "started": "2026-01-01T00:00:00Z", "mode": "ring", "remarks": []}
    return json.dumps({**facts, "points": points}, indent=2)


FAST_REPORT = report([point(1, 1e6, 0.75), point(64, 2e6, 30.0), point(1000, 3e6, 300.0), point(10_000, 2.7e6, 3000.0)])
