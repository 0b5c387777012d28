"""Where the repository and the program under test are."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Where cargo builds, as the Makefile has it.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def program(path: str | os.PathLike[str] | None = None) -> str:
    """Returns the absolute path of prime-agents: the given one, that of $PRIME, or the release build.

    Exits with a message if no file is there. The path is absolute because some tests start the
    program in another folder.
    """
    found = Path(path or os.environ.get("PRIME") or TARGET / "release" / "prime-agents").resolve()
    if not found.is_file():
        sys.exit(f"{found}: there is no such program; build it with `cargo build --release`")
    return str(found)
