"""llama-index-workflows: steps that exchange typed events; a trajectory is a run of the workflow."""

from workflows import Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from common import PAYLOAD, Phase, Verdict, gather, report

# The framework copies events and makes steps of methods: the bookkeeping is beside them.
PHASE = None


class Requested(Event):
    trajectory: int
    number: int
    payload: str


class Proposed(Event):
    trajectory: int
    number: int
    payload: str


class Judged(Event):
    trajectory: int
    number: int
    score: float
    payload: str


class Ring(Workflow):
    @step
    async def begin(self, event: StartEvent) -> Requested:
        return Requested(trajectory=event.trajectory, number=event.first, payload=PAYLOAD)

    @step
    async def executor(self, event: Requested) -> Proposed:
        return Proposed(trajectory=event.trajectory, number=event.number, payload=event.payload)

    @step
    async def verifier(self, event: Proposed) -> Judged:
        return Judged(trajectory=event.trajectory, number=event.number, score=0.0, payload=event.payload)

    @step
    async def coordinator(self, event: Judged) -> Requested | StopEvent:
        request = PHASE.decide(Verdict(event.trajectory, event.number, event.score, event.payload))
        if request is None:
            return StopEvent(result=0)
        return Requested(trajectory=request.trajectory, number=request.step, payload=request.payload)


async def run(_variant, spec):
    global PHASE
    if spec.kind == "shared":
        return None
    PHASE = Phase(spec)
    ring = Ring(timeout=None)

    async def trajectory(index, first, _target):
        await ring.run(trajectory=index, first=first)

    return await gather(PHASE, trajectory)


report(run)
