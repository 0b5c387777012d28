"""Shared by the tests: the repository's golden files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[2] / "tests" / "golden"


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def outputs() -> list[dict[str, Any]]:
    """Outputs of all sorts, `{"id", "output"}` or `{"id", "actions", "answer"}`."""
    return lines_of("outputs.jsonl")


@pytest.fixture(scope="session")
def judgements() -> list[dict[str, Any]]:
    """What the program's `bench check --details` has written of these outputs."""
    return lines_of("judgements.jsonl")


@pytest.fixture(scope="session")
def manifest() -> dict[str, Any]:
    """Digests of the files that the program's `bench generate --all` has written."""
    return json.loads((GOLDEN / "benchmark.json").read_text(encoding="utf-8"))
