"""The daemon in the eyes of a fuzzer: `run.py EXECUTABLE [EXAMPLES]` sends what its document allows, and what it does not.

Schemathesis reads /openapi.json, makes requests of it (examples, ends of ranges, random ones, chains of them) and holds
every answer against it. The executor is the reference algorithm, so no model is needed.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import Daemon, Refused, ask, program  # noqa: E402
from harness.daemon import REFERENCE  # noqa: E402

# Requests of each kind for each operation: a minute in all. More are for a search overnight.
EXAMPLES = 10
# The same requests each time.
SEED = 7
# Seconds for an answer; a run has less, see SETTINGS.
PATIENCE = 30
KEY = "prime_" + "0" * 64
# Schemathesis' checks that are left out.
UNCHECKED = [
    # A document cannot say which inputs a task takes, which presets exist, or which run has which event.
    "positive_data_acceptance",
]
SETTINGS = [
    REFERENCE,
    # Streams and chat completions end with their runs: none takes long.
    "run.budget.steps=200",
    "run.budget.wall_ms=1000",
    # The answers are checked, not the limits on how many there are.
    "server.queue_max=10000",
    "server.requests_per_second=0",
    "log.level=warn",
]


def fuzz(executable, examples, settings, headers):
    """Whether a daemon with these settings answers as its document says."""
    with Daemon(executable, *SETTINGS, *settings) as daemon:
        arguments = [
            Path(sys.executable).with_name("schemathesis"),
            *("run", f"{daemon.url}/openapi.json", "--no-color", "--warnings", "off"),
            *("--checks", "all", "--exclude-checks", ",".join(UNCHECKED), "--continue-on-failure"),
            *("--seed", str(SEED), "--max-examples", str(examples), "--generation-database", "none"),
            *("--request-timeout", str(PATIENCE)),
            *(word for header in headers for word in ("--header", header)),
        ]
        # It keeps what it found in the folder that it is started in.
        is_right = subprocess.run(arguments, check=False, cwd=daemon.folder).returncode == 0

        # A daemon that a request has broken may still answer, but says that it is not ready.
        try:
            ask(daemon.address, "GET", "/readyz", timeout=PATIENCE)
        except (OSError, Refused) as error:
            print(f"the daemon is not ready after the requests: {error!r}")
            is_right = False

        code, log = daemon.stop(), daemon.said()

    if "panicked" in log or code != 0:
        print(f"the daemon ended with {code} and said:\n{log}")
        return False
    return is_right


def main():
    executable = program(sys.argv[1])
    examples = int(sys.argv[2]) if len(sys.argv) > 2 else EXAMPLES
    sha256 = hashlib.sha256(KEY.encode()).hexdigest()
    keys = f'server.keys=[{{name="fuzzer", sha256="{sha256}"}}]'

    # Both, so that the second is also tried when the first has failed.
    is_right = fuzz(executable, examples, [], [])
    is_right &= fuzz(executable, examples, [keys], [f"Authorization: Bearer {KEY}"])
    sys.exit(0 if is_right else "the daemon and its document differ, see above")


if __name__ == "__main__":
    main()
