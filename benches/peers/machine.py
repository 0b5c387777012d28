"""On what was measured, and which versions: of the machine its class and no name."""

import os
import platform
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def machine():
    """Processor, cores that may be used, memory, system."""
    return {
        "processor": _after_colon("/proc/cpuinfo", "model name") or platform.processor() or "processor unknown",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions():
    """The pinned version of every package that a row names, except ours."""
    found = {"python": platform.python_version(), "rustc": _rustc()}
    cargo = (HERE / "rust" / "Cargo.toml").read_text()
    found.update(re.findall(r'^([\w-]+) = (?:\{ version = )?"=([\d.]+)"', cargo, re.MULTILINE))
    found.update(re.findall(r"^([\w-]+)==([\w.]+)", (HERE / "requirements.txt").read_text(), re.MULTILINE))
    return found


def _rustc():
    try:
        said = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.split()[1]


def _after_colon(path, field):
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(field)), None)


def _memory_gib():
    size = _after_colon("/proc/meminfo", "MemTotal")
    return round(int(size.split()[0]) / (1 << 20)) if size else None
