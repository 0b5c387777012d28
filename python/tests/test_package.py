"""The package as it is installed: types, documentation, README."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys
from pathlib import Path

import prime_bench

README = Path(__file__).parents[1] / "README.md"
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


def test_the_readme_is_true(capsys) -> None:
    """Runs its snippets in order; a comment after `print` is what it prints."""
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert snippets
    names: dict = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
        wanted = re.findall(r"print\(.*\)  # (.*)", snippet)
        assert capsys.readouterr().out.splitlines() == wanted
