"""`prime-agents serve` as a process that tests start, stop, kill and start again."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.waiting import PATIENCE_S

READY = re.compile(r"ready on http://(\S+)")
# The executor that needs no model: the tasks' own algorithms.
REFERENCE = "agents.executor.implementation=reference"


def set_options(settings: Iterable[str]) -> list[str]:
    """Returns the command-line words for settings of the form `key=value`."""
    return [word for setting in settings for word in ("--set", setting)]


class Daemon:
    """A daemon on a port of its own, ready once it is constructed. It may have several lives.

    The port is the one that the system gives the daemon, which prints it: a port chosen here could be
    taken by another process in between. Its journal and its log are in `folder`; without one, in
    a temporary folder that `close` removes. As a context manager it closes itself.
    """

    def __init__(
        self,
        program: str,
        *settings: str,
        folder: str | os.PathLike[str] | None = None,
        name: str = "daemon",
        config: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._own_folder = tempfile.TemporaryDirectory(prefix="prime-") if folder is None else None
        self.folder = Path(self._own_folder.name if folder is None else folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.journal = self.folder / "runs.sqlite"
        self.log = self.folder / f"{name}.log"

        self.program, self.settings, self.name, self.config = program, settings, name, config
        self.environment = environment or {}

        # `host:port`; None while it is not known to serve.
        self.address: str | None = None
        # From the start of the process to the line that says it is ready.
        self.ready_after_s = 0.0
        self.start()

    @property
    def url(self) -> str:
        """The address as a URL, without a slash at its end."""
        return f"http://{self.address}"

    def command(self) -> list[str]:
        """Returns the command line. Later settings override earlier ones."""
        config = ["--config", str(self.config)] if self.config else []
        own = ["server.bind=127.0.0.1:0", f"journal.path={self.journal}"]
        return [self.program, "serve", *config, *set_options([*own, *self.settings])]

    def start(self) -> None:
        """Starts the process and waits until it is ready; AssertionError with its log if it is not."""
        began = time.perf_counter()
        self.process = subprocess.Popen(
            self.command(),
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

        # A thread reads until the end: a daemon whose pipe is full would block. It also tells at
        # once when the daemon is ready, so that the time until then can be measured.
        settled = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(settled,), daemon=True)
        self._reader.start()

        settled.wait(PATIENCE_S)
        self.ready_after_s = time.perf_counter() - began
        if self.address is None:
            self.kill()
            self._reader.join(PATIENCE_S)
            raise AssertionError(f"{self.name} was never ready:\n{self.said()}")

    def _read(self, settled: threading.Event) -> None:
        with self.process.stdout as lines, self.log.open("a", encoding="utf-8") as log:
            for line in lines:
                log.write(line)
                log.flush()
                if found := READY.search(line):
                    self.address = found.group(1)
                    settled.set()

        # It may also have ended instead.
        settled.set()

    def said(self) -> str:
        """Returns the log of all lives, whole once the daemon has been stopped."""
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""

    def stop(self) -> int:
        """Ends the daemon with SIGTERM, as a service manager does, and returns its exit code."""
        self.address = None
        self.process.terminate()
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} ignores SIGTERM:\n{self.said()}") from None

        self._reader.join(PATIENCE_S)
        return code

    def kill(self) -> None:
        """Ends the daemon with SIGKILL, as a power cut does."""
        # Clients in other threads look at the address, so it goes before the process does.
        self.address = None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Halts the process, as a long pause of its machine does; its port stays open."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused process continue."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stops the daemon if it lives, even paused, and removes the folder if it is its own."""
        if self.process.poll() is None:
            self.resume()
            self.stop()
        self._reader.join(PATIENCE_S)

        if self._own_folder:
            self._own_folder.cleanup()

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
