"""Schedules under kills, on one node and on three, by a clock that stands still between its jumps. PRIME_ROUNDS and PRIME_SEED as elsewhere."""

import json
import os
import random
import sqlite3
import tempfile
import time
import unittest
from datetime import UTC, datetime
from pathlib import Path

from cluster import Node, Postgres, StandingClock

from harness import ask, finished, until

LEASE_MS = 1_000
ROUNDS = int(os.environ.get("PRIME_ROUNDS", "8"))
SEED = int(os.environ.get("PRIME_SEED", "86"))
MINUTE, HOUR, DAY = 60, 3_600, 86_400
REQUEST = {"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "fanout": 1}
# What the idempotency keys of a schedule begin with.
PREFIX = "\u00a7schedule:tick:"


def schedule(cron, missed):
    return f"schedules.tick={{cron='{cron}', missed='{missed}', request='{json.dumps(REQUEST)}'}}"


def shown(time_s):
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:00.000Z")


def key(time_s):
    """The key of the run of this minute."""
    return PREFIX + shown(time_s)


class Schedules:
    """The tests, for one store; `setUp` makes `nodes`."""

    # By how many seconds the clock of each node is ahead.
    skews = (0,)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # In the middle of a minute, so that clocks that differ show the same one, and long after a full hour.
        hour = int(time.time()) // HOUR * HOUR
        self.clock = StandingClock(folder.name, hour + 10 * MINUTE + MINUTE // 2)
        self.open_store()
        self.nodes = []
        for at, skew_s in enumerate(self.skews):
            sets = [f"journal.lease_ms={LEASE_MS}", "log.level=info", self.schedule()]
            environment = self.clock.environment(skew_s)
            node = Node(f"node-{at}", self.url, self.folder, *sets, environment=environment)
            self.nodes.append(node)
            self.addCleanup(node.close)
        until(self.done, "the schedule is known")

    def schedule(self):
        return schedule("0 * * * *", "skip") if "skipped" in self._testMethodName else schedule("* * * * *", "once")

    def done(self):
        return ask(self.nodes[0].address, "GET", "/v1/schedules")["schedules"][0].get("done_until")

    def restart(self):
        for node in self.nodes:
            if node.address is None:
                node.start()

    def minute(self):
        """The beginning of the present minute."""
        return self.clock.now_s // MINUTE * MINUTE

    def until_started(self, time_s):
        until(lambda: key(time_s) in self.keys(), f"the run of {key(time_s)} starts\n{self.logs()}")

    def logs(self):
        return "\n".join(f"--- {node.name}\n{node.said()[-4_000:]}" for node in self.nodes)

    def runs(self):
        address = next(node.address for node in self.nodes if node.address)
        return ask(address, "GET", "/v1/runs?limit=1000")["runs"]

    def check(self, times):
        """Every one of these times has one run, which ends, and there is no other."""
        expected = sorted(key(time_s) for time_s in times)
        self.assertEqual(sorted(self.keys()), expected, self.logs())
        runs = self.runs()
        self.assertEqual(len(runs), len(expected), "a run without a key")
        for run in runs:
            self.assertEqual(run["labels"], {"schedule": "tick"})
            self.assertEqual(finished(self.nodes[0].address, run["id"])[1]["status"], "verified")

    def test_each_time_starts_one_run_whatever_is_killed(self):
        rng = random.Random(SEED)
        times = []
        for _ in range(ROUNDS):
            # The pauses vary what a kill meets: before, during or after the acceptance.
            victims = rng.sample(self.nodes, rng.randint(1, len(self.nodes)))
            is_early = rng.random() < 0.3
            if is_early:
                for node in victims:
                    node.kill()
            self.clock.jump(MINUTE)
            times.append(self.minute())
            if not is_early:
                time.sleep(rng.uniform(0, 1.5))
                for node in victims:
                    node.kill()
            self.restart()
            self.until_started(times[-1])
        self.check(times)

    def test_a_clock_that_jumps_starts_no_run_twice(self):
        times = []
        for _ in range(3):
            self.clock.jump(MINUTE)
            times.append(self.minute())
            self.until_started(times[-1])

        # Backwards: the same minutes come again, and their runs are there.
        self.clock.jump(-2 * MINUTE)
        for _ in range(2):
            self.clock.jump(MINUTE)
            self.nodes[-1].kill()
            self.restart()
        self.clock.jump(MINUTE)
        times.append(self.minute())
        self.until_started(times[-1])

        # Forwards over a day of minutes: one run.
        self.clock.jump(DAY)
        times.append(self.minute())
        self.until_started(times[-1])
        # Far back, and on as before: what a wrong clock has marked does not silence the schedule.
        # The minute that it falls into may have passed unseen, so it starts a run as well.
        self.clock.jump(-10 * DAY)
        times.append(self.minute())
        self.until_started(times[-1])
        self.nodes[0].kill()
        self.restart()
        self.clock.jump(MINUTE)
        times.append(self.minute())
        self.until_started(times[-1])
        self.check(times)

    def test_what_was_missed_is_made_up_for_once(self):
        for node in self.nodes:
            node.kill()
        self.clock.jump(5 * HOUR)
        self.restart()
        made_up = self.minute()
        self.until_started(made_up)
        self.check([made_up])

    def test_what_was_missed_is_skipped(self):
        for node in self.nodes:
            node.kill()
        self.clock.jump(5 * HOUR)
        self.restart()
        hour = self.minute() - 10 * MINUTE
        until(lambda: self.done() == shown(hour), "the last time is left out")
        self.assertEqual(self.keys(), [])

        self.clock.jump(50 * MINUTE)
        self.until_started(self.minute())
        self.check([self.minute()])


class OneNode(Schedules, unittest.TestCase):
    url = ""

    def open_store(self):
        pass

    def keys(self):
        with sqlite3.connect(f"file:{self.folder / 'runs.sqlite'}?mode=ro", uri=True) as file:
            found = file.execute("SELECT key FROM run WHERE key IS NOT NULL").fetchall()
        return [name for (name,) in found]


class ThreeNodes(Schedules, unittest.TestCase):
    # Nodes whose clocks differ fire at different moments, and one of them is first. The last starts
    # before what the first has marked.
    skews = (0, 2, -20)

    def open_store(self):
        self.postgres = Postgres()
        self.addCleanup(self.postgres.close)
        self.url = self.postgres.url

    def keys(self):
        return [name for (name,) in self.postgres.sql("SELECT key FROM idempotency_key")]


if __name__ == "__main__":
    unittest.main()
