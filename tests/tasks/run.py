"""Problems of packages as tasks in a daemon: `run.py EXECUTABLE`, in an environment that has the packages and `prime-bench`.

Each is solved by drawing among the moves: with backtracking, with votes over three trajectories, through a `kill -9` of the
daemon while a program is at work, and with a verdict, which the package's own rules confirm. A lock that this test holds
lets no run end before the kill.
"""

import fcntl
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import ROOT, Daemon, ask, finished, program, until  # noqa: E402

EXAMPLES = ROOT / "examples" / "packages"
TASKS = {
    "rush-hour": ("rush_hour.py", "RushHour", {"seed": 1, "index": 0, "moves": 4}),
    "futoshiki": ("futoshiki.py", "Futoshiki", {"seed": 1, "index": 0}),
    "textarena": ("textarena_task.py", "TextArena", {"game": "PegJump-v0", "seed": 1}),
}


def loaded(file, name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)()


def settings(lock):
    options = ["agents.executor.implementation=uniform"]
    for name, (file, task, _) in TASKS.items():
        command = [sys.executable, str(Path(__file__).with_name("gated.py")), str(EXAMPLES / file), task, str(lock)]
        options += [f"tasks.{name}.command={json.dumps(command)}", f"tasks.{name}.processes=2"]
    return options


def main(executable):
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "lock"
        with lock.open("w") as held, Daemon(executable, *settings(lock)) as daemon:
            fcntl.flock(held, fcntl.LOCK_EX)
            runs = {}
            for name, (*_, given) in TASKS.items():
                wanted = {"task": name, "input": given, "fanout": 3, "max_rounds": 8, "seed": 11}
                runs[name] = ask(daemon.address, "POST", "/v1/runs", wanted, timeout=60)["id"]
            for name, run in runs.items():
                read = lambda run=run: ask(daemon.address, "GET", f"/v1/runs/{run}")  # noqa: E731
                until(lambda read=read: read()["steps"] > 0, f"{name} has a committed step")

            daemon.kill()
            fcntl.flock(held, fcntl.LOCK_UN)
            daemon.start()
            for name, run in runs.items():
                check(name, *finished(daemon.address, run))


def check(name, lines, record):
    file, task, given = TASKS[name]
    assert record["status"] == "verified" and record["resumed"] >= 1, record
    # Backtracking: steps were rejected, and the search went on from there.
    assert record["backtracks"] > 0, record
    assert sum(ballot["votes"] for ballot in record["votes"]) >= 1, record["votes"]
    score = loaded(file, task).score_answer(given, record["answer"])
    assert score == 1.0, (name, score, record["answer"])
    print(f"{name}: {record['steps']} steps, {record['proposals']} proposals, {record['backtracks']} rejected, "
          f"{record['pops']} pops, {len(record['votes'])} answers, {len(lines)} events, resumed {record['resumed']} times: "
          f"{record['status']}")


if __name__ == "__main__":
    main(program(*sys.argv[1:]))
