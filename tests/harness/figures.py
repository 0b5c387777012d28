"""Figures as the scripts print them, and what they are computed from."""

import gzip
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

RESAMPLES = 10_000


def percentile(values: Sequence[float], share: int) -> float:
    """Returns the value that `share` percent of the values do not exceed, by nearest rank."""
    return sorted(values)[max(0, -(-len(values) * share // 100) - 1)]


def spread(values: Sequence[float], digits: int = 0, unit: str = "") -> str:
    """Returns the median with its unit, and in parentheses the least and the most value."""
    middle, low, high = (
        f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle}{unit} ({low} to {high})"


def bootstrap_95(draw: Callable[[], float]) -> tuple[float, float]:
    """Returns the 95 % percentile bootstrap interval of a statistic; `draw` computes it of one resample."""
    drawn = sorted(draw() for _ in range(RESAMPLES))
    return drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES) - 1]


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the records of a study: JSON Lines, or these with gzip as `.gz`.

    A line that is not a record is left out, with a message: an interrupted study may have cut off its last.
    """
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                print(f"{path}:{number}: not a record; left out", file=sys.stderr)


def cpu_field(name: str) -> str | None:
    """Returns a field of the first processor, such as `model name` or `flags`; None where Linux has none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in fields if key.strip() == name), None)
