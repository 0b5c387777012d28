"""Waiting for what must happen, with a deadline."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

# Seconds for anything that must happen. Only a failure takes that long, so the value is generous:
# the machine may be busy with much else.
PATIENCE_S = int(os.environ.get("PRIME_PATIENCE_S", "120"))
POLL_S = 0.02


def until(
    condition: Callable[[], Found | None],
    what: str,
    patience_s: float = PATIENCE_S,
    poll_s: float = POLL_S,
) -> Found:
    """Calls `condition` until its result is true, and returns that; AssertionError at the deadline.

    `what` names what is awaited. A condition that sees that it can never hold raises.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(poll_s)
    raise AssertionError(f"still not so after {patience_s} s: {what}")
