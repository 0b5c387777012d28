"""The package as it is installed: types, documentation, README."""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import prime_bench

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "python" / "README.md", ROOT / "docs" / "python.md"]
DIST = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "python" / "dist"
PACKAGE = Path(prime_bench.__file__).parent


def test_what_is_tested_is_installed() -> None:
    assert "site-packages" in PACKAGE.parts, "the tests are for the wheel"
    assert importlib.metadata.version("prime-bench") == prime_bench.__version__
    assert (PACKAGE / "py.typed").is_file() and (PACKAGE / "_native.pyi").is_file()
    assert importlib.metadata.requires("prime-bench") is None or all(
        "extra ==" in line for line in importlib.metadata.requires("prime-bench") or []
    )


def test_everything_public_is_documented() -> None:
    for name in prime_bench.__all__:
        member = getattr(prime_bench, name)
        if inspect.isclass(member) or callable(member):
            assert inspect.getdoc(member), name
        if inspect.isclass(member) and member.__module__ == "prime_bench":
            for method, value in vars(member).items():
                assert method.startswith("_") or inspect.getdoc(value), f"{name}.{method}"


def test_importing_needs_nothing_else() -> None:
    code = "import sys, prime_bench; print(sorted({'numpy', 'gymnasium', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_stubs_agree_with_the_module() -> None:
    run = [sys.executable, "-m", "mypy.stubtest", "prime_bench._native", "--ignore-missing-stub", "--ignore-disjoint-bases"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_types_are_strict() -> None:
    run = [sys.executable, "-m", "mypy", "--strict", "--no-warn-unused-ignores", "--ignore-missing-imports", "-p", "prime_bench"]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_true(page: Path, capfd: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a page's blocks in order; a comment after `print` is what it prints. What is installed is found in the wheel's folder:
    nothing is downloaded."""
    monkeypatch.chdir(tmp_path)
    folder = str(Path(sys.executable).parent)
    shell = {"PATH": f"{folder}:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(DIST), "PIP_QUIET": "1"}
    blocks = re.findall(r"^```(\S*)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    names: dict = {}
    assert {kind for kind, _ in blocks} == {"sh", "python"}
    for kind, block in blocks:
        if kind == "sh":
            done = subprocess.run(["sh", "-eu", "-c", block], env=shell, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (block, done.stderr)
            continue
        exec(compile(block, str(page), "exec"), names)
        wanted = re.findall(r"print\(.*\)  # (.*)", block)
        assert wanted and capfd.readouterr().out.splitlines() == wanted


def test_the_words_for_answers_are_those_of_the_program() -> None:
    words = ("violated", "unchecked", "unrefuted", "verified")
    assert prime_bench.ASSURANCES == words
    # The table of the promise, strongest first, is the only place that explains them.
    promise = (ROOT / "docs" / "agents.md").read_text().split("### The promise", 1)[1]
    table = promise.split("**Sound**", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert tuple(reversed(rows)) == words
