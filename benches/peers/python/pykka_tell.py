"""pykka: an actor is a thread; `tell` round the ring."""

import threading

import pykka

from common import PAYLOAD, Phase, Request, Stopwatch, execute, report, verify


class Executor(pykka.ThreadingActor):
    def __init__(self, verifier):
        super().__init__()
        self.verifier = verifier

    def on_receive(self, request):
        self.verifier.tell(execute(request))


class Verifier(pykka.ThreadingActor):
    def __init__(self, coordinator):
        super().__init__()
        self.coordinator = coordinator

    def on_receive(self, action):
        self.coordinator.tell(verify(action))


class Coordinator(pykka.ThreadingActor):
    def __init__(self, phase, executors):
        super().__init__()
        self.phase = phase
        self.executors = executors

    def on_receive(self, verdict):
        request = self.phase.decide(verdict)
        if request is not None:
            self.executors[0].tell(request)


class SharedPhase(Phase):
    """Coordinators of several trios are several threads; only a lap's last step counts down together."""

    lock = threading.Lock()

    def decide(self, verdict):
        if self.spec.kind != "trios" or verdict.step + 1 < self.target:
            return super().decide(verdict)
        with self.lock:
            return super().decide(verdict)


def run(_variant, spec):
    # More threads would measure the kernel.
    if spec.trios > 64:
        return None
    ended = threading.Event()
    phase = SharedPhase(spec, ended.set)
    entries = []
    for _ in range(spec.trios):
        executors = []
        executors.append(Executor.start(Verifier.start(Coordinator.start(phase, executors))))
        entries.append(executors[0])
    for first, target in phase.laps():
        ended.clear()
        phase.begin(target)
        stopwatch = Stopwatch()
        for trajectory in range(spec.trajectories):
            entries[trajectory % len(entries)].tell(Request(trajectory, first, PAYLOAD))
        ended.wait()
        entry = stopwatch.measured(phase)
    pykka.ActorRegistry.stop_all(block=False)
    return entry


report(run)
