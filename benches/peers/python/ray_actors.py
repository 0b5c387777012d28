"""ray: three actors, each a process, on a cluster of this machine; each calls the next one's method and drops the
reference to its result. All trajectories share them."""

import asyncio
import logging
import os
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# The actors' processes import `common` too.
HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))

import ray

from common import PAYLOAD, Phase, Request, execute, measured, report, verify

# Seconds between two questions whether a lap has ended; they queue behind the ring's own messages.
POLL = 0.05


@ray.remote(num_cpus=1)
class Executor:
    def wire(self, verifier):
        self.verifier = verifier

    def step(self, request):
        self.verifier.step.remote(execute(request))


@ray.remote(num_cpus=1)
class Verifier:
    def wire(self, coordinator):
        self.coordinator = coordinator

    def step(self, action):
        self.coordinator.step.remote(verify(action))


@ray.remote(num_cpus=1)
class Coordinator:
    def wire(self, executor):
        self.executor = executor

    def begin(self, spec, first, target):
        self.phase = Phase(spec, self.finish)
        self.phase.begin(target)
        self.seconds, self.start = None, time.perf_counter()
        for trajectory in range(spec.trajectories):
            self.executor.step.remote(Request(trajectory, first, PAYLOAD))

    def finish(self):
        self.seconds = time.perf_counter() - self.start

    def step(self, verdict):
        request = self.phase.decide(verdict)
        if request is not None:
            self.executor.step.remote(request)

    def poll(self):
        """Seconds and samples of the lap, once it has ended."""
        return None if self.seconds is None else (self.seconds, self.phase.samples)


async def laps(spec, coordinator):
    for first, target in Phase(spec).laps():
        await coordinator.begin.remote(spec, first, target)
        while (ended := await coordinator.poll.remote()) is None:
            await asyncio.sleep(POLL)
    return measured(spec, ended[0], None, ended[1])


def start():
    """The three actors, wired."""
    options = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
    ray.init(num_cpus=4, logging_level=logging.ERROR, object_store_memory=100 << 20, **options)
    executor, verifier, coordinator = Executor.remote(), Verifier.remote(), Coordinator.remote()
    wired = executor.wire.remote(verifier), verifier.wire.remote(coordinator), coordinator.wire.remote(executor)
    ray.get(list(wired))
    return executor, verifier, coordinator


if __name__ == "__main__":
    # An actor that nobody holds is ended.
    ACTORS = start()
    report(lambda _variant, spec: None if spec.kind == "trios" else laps(spec, ACTORS[2]), ray.shutdown)
