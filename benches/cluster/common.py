"""Trajectories of a peer on PostgreSQL: how many steps they finish in a time, and how long the start of one takes."""

import asyncio
import json
import sys
import time

PAYLOAD = "x" * 64


class Window:
    """Counts the steps between its begin and its end; a step is finished when the framework continues after it."""

    def __init__(self, seconds):
        self.seconds, self.finished, self.end = seconds, 0, float("inf")

    def is_open(self):
        self.finished += 1
        return time.monotonic() < self.end


async def measure(walk, trajectories, seconds):
    """Steps a second of this many trajectories at once, and all their steps; `walk(window, index)` runs while the window is open."""
    window = Window(seconds)
    tasks = [asyncio.create_task(walk(window, index)) for index in range(trajectories)]
    # What connections and statements cost at first is not part of it.
    while window.finished < 2 * trajectories:
        await asyncio.sleep(0.01)
    before, begin = window.finished, time.monotonic()
    window.end = begin + seconds
    await asyncio.gather(*tasks)
    rate = (window.finished - before) / (time.monotonic() - begin)
    return {"steps_per_s": rate, "steps": window.finished}


def report(run):
    """`run(url, trajectories, seconds)` measures; prints the figures as JSON."""
    url, trajectories, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(run(url, int(trajectories), float(seconds)))))
