"""The daemon in the eyes of a fuzzer: `run.py EXECUTABLE [EXAMPLES]` sends what its document allows, and what it does not.

Schemathesis reads /openapi.json, makes requests of it (examples, ends of ranges, random ones, chains of them) and holds
every answer against it. The executor is the reference algorithm, so no model is needed.
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.request

# Requests of a kind for each operation; a minute in all. More are for the search of a night.
EXAMPLES = 10
# The same requests each time.
SEED = 7
# Seconds for an answer; a run has less, see below.
PATIENCE = 30
KEY = "prime_" + "0" * 64
# Everything is checked but what is here.
UNCHECKED = [
    # A document cannot say which inputs a task takes, which presets there are, or which run has which event.
    "positive_data_acceptance",
]
SETTINGS = [
    "server.bind=127.0.0.1:0",
    "agents.executor.implementation=reference",
    # Streams and chat completions end with their runs: none takes long.
    "run.budget.steps=200",
    "run.budget.wall_ms=1000",
    # It is the answers that are looked at, not how many there are.
    "server.queue_max=10000",
    "server.requests_per_second=0",
    "log.level=warn",
]


class Daemon:
    """A daemon of its own, with its journal in a folder that goes with it."""

    def __init__(self, executable, settings):
        self.folder = tempfile.TemporaryDirectory()
        settings = [*SETTINGS, *settings, f"journal.path={self.folder.name}/runs.sqlite"]
        arguments = [executable, "serve"] + [word for setting in settings for word in ("--set", setting)]
        self.process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if "ready on http://" in line:
                self.url = line.strip().split("ready on ")[1]
                break
        else:
            raise RuntimeError("the daemon ended before it was ready: " + "".join(self.said))
        # It must not wait for somebody to read its log.
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.reader.start()

    def end(self):
        """Ends the daemon; gives what it said."""
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.reader.join()
        self.folder.cleanup()
        return "".join(self.said)


def fuzz(executable, examples, settings, headers):
    """Says whether a daemon with these settings answers as its document says."""
    daemon = Daemon(executable, settings)
    arguments = [
        pathlib.Path(sys.executable).with_name("schemathesis"),
        *("run", f"{daemon.url}/openapi.json", "--no-color", "--warnings", "off"),
        *("--checks", "all", "--exclude-checks", ",".join(UNCHECKED), "--continue-on-failure"),
        *("--seed", str(SEED), "--max-examples", str(examples), "--generation-database", "none"),
        *("--request-timeout", str(PATIENCE)),
        *(word for header in headers for word in ("--header", header)),
    ]
    # It keeps what it found in the folder that it is started in.
    is_right = subprocess.run(arguments, check=False, cwd=daemon.folder.name).returncode == 0
    with urllib.request.urlopen(f"{daemon.url}/readyz", timeout=PATIENCE) as response:
        is_right &= response.status == 200
    log = daemon.end()
    if "panicked" in log or daemon.process.returncode != 0:
        print(f"the daemon ended with {daemon.process.returncode} and said:\n{log}")
        return False
    return is_right


def main():
    executable = sys.argv[1]
    examples = int(sys.argv[2]) if len(sys.argv) > 2 else EXAMPLES
    sha256 = hashlib.sha256(KEY.encode()).hexdigest()
    keys = f'server.keys=[{{name="fuzzer", sha256="{sha256}"}}]'
    is_right = fuzz(executable, examples, [], [])
    is_right &= fuzz(executable, examples, [keys], [f"Authorization: Bearer {KEY}"])
    sys.exit(0 if is_right else "the daemon and its document differ, see above")


if __name__ == "__main__":
    main()
