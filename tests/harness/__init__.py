"""What the tests and the scripts share: a daemon as a process, its HTTP interface, waiting, figures.

Standard library only, so that it works in the environment of any client. Who uses it adds the folder
`tests` to `sys.path`, at the end: `tests/mcp` and `tests/openai` are named like packages.
"""

from harness.client import Client, Refused, ask, events, finished, metrics
from harness.daemon import Daemon, set_options
from harness.program import ROOT, TARGET, program
from harness.waiting import PATIENCE_S, until

__all__ = [
    "PATIENCE_S",
    "ROOT",
    "TARGET",
    "Client",
    "Daemon",
    "Refused",
    "ask",
    "events",
    "finished",
    "metrics",
    "program",
    "set_options",
    "until",
]
