"""Calls the program of a row, and has an answer for each way in which it can fail: such a row says so, no more."""

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import loadtest
from rows import phases

HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """Nothing was measured; the message says why."""


def command(row, options):
    """The words that start a row's program."""
    if row.is_ours:
        return [str(options.prime), *loadtest.arguments(row.variant, 3 * options.scale)]
    words = [*row.variant, *phases(row, options.scale)]
    if row.language == "rust":
        return [str(options.programs / row.program), *words]
    return [str(options.python), "-B", str(HERE / "python" / f"{row.program}.py"), *words]


def environment(out, ray):
    """What a framework leaves behind stays in these folders; `ray` is short, as it holds sockets."""
    folders = {"HOME": out / "home", "PEERS_DATA": out / "data", "TMPDIR": out / "data"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {**os.environ, **{name: str(folder) for name, folder in folders.items()}, "RAY_TMPDIR": str(ray)}


def output(words, limit, env, folder):
    """What a program prints on standard output, if it ends well within the limit, in seconds."""
    # Files and not pipes: what it starts may hold them open for longer than it lives.
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said:
        streams = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": said}
        try:
            process = subprocess.Popen(words, **streams, env=env, cwd=folder, start_new_session=True)
        except OSError as error:
            raise Failed(f"{Path(words[0]).name} did not start: {error.strerror}") from error
        try:
            code = process.wait(limit)
        except BaseException as error:
            # Its children too, whether it took too long or the harness is interrupted.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"not done within {limit:g} s") from error
            raise
        printed.seek(0)
        said.seek(0)
        if code != 0:
            raise Failed(f"ended with {code}: {_end(said.read())}")
        return printed.read()


def _end(text):
    """The last two lines, without the folders of this machine: it may be shown in the docs."""
    lines = " / ".join(text.strip().splitlines()[-2:])
    return re.sub(r"(?:/[\w.@+-]+)+/", "", lines)[-200:]


def measure(row, options, env):
    """What a row's program measured: `{"phases": …}`, of ours with `version`; or `{"error": …}`."""
    try:
        printed = output(command(row, options), options.limit, env, env["PEERS_DATA"])
        if row.is_ours:
            found, version = loadtest.read(printed)
            return {"phases": found, "version": version}
        return {"phases": _last_object(printed)["phases"]}
    except (Failed, loadtest.NotAReport) as error:
        return {"error": str(error)}


def _last_object(printed):
    """Frameworks print before the program does."""
    for line in reversed(printed.splitlines()):
        if line.startswith('{"phases"'):
            try:
                return json.loads(line)
            except json.JSONDecodeError as error:
                raise Failed(f"printed no JSON: {error}") from error
    raise Failed("printed no line of JSON")
