"""autogen-core, its runtime of one thread. Variant `publish`: topics round the ring; `send`: a driver that awaits
`send_message` of executor, verifier and coordinator in turn."""

import asyncio
from dataclasses import dataclass

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    message_handler,
)

from common import PAYLOAD, Action, Phase, Request, Verdict, drive, execute, report, verify

# The coordinators' bookkeeping: the framework makes the agents.
PHASE = None


@dataclass
class AskedRequest:
    """A request that is answered with an action; messages are told apart by their types."""

    trajectory: int
    step: int
    payload: str


@dataclass
class AskedAction:
    trajectory: int
    step: int
    payload: str


@dataclass
class AskedVerdict:
    trajectory: int
    step: int
    score: float
    payload: str


@dataclass
class Decision:
    """The next request, or that there is none."""

    proceeds: bool
    trajectory: int
    step: int
    payload: str


class Executor(RoutedAgent):
    @message_handler
    async def on_request(self, message: Request, ctx: MessageContext) -> None:
        await self.publish_message(execute(message), TopicId("action", self.id.key))

    @message_handler
    async def on_asked(self, message: AskedRequest, ctx: MessageContext) -> Action:
        return execute(message)


class Verifier(RoutedAgent):
    @message_handler
    async def on_action(self, message: Action, ctx: MessageContext) -> None:
        await self.publish_message(verify(message), TopicId("verdict", self.id.key))

    @message_handler
    async def on_asked(self, message: AskedAction, ctx: MessageContext) -> Verdict:
        return verify(message)


class Coordinator(RoutedAgent):
    @message_handler
    async def on_verdict(self, message: Verdict, ctx: MessageContext) -> None:
        request = PHASE.decide(message)
        if request is not None:
            await self.publish_message(request, TopicId("request", self.id.key))

    @message_handler
    async def on_asked(self, message: AskedVerdict, ctx: MessageContext) -> Decision:
        proceeds = PHASE.decide(message) is not None
        return Decision(proceeds, message.trajectory, message.step + 1, message.payload)


ROLES = {"executor": (Executor, "request"), "verifier": (Verifier, "action"), "coordinator": (Coordinator, "verdict")}


async def ask(runtime, key, request):
    """One trajectory's lap."""
    executor, verifier, coordinator = (AgentId(role, key) for role in ROLES)
    while True:
        message = AskedRequest(request.trajectory, request.step, request.payload)
        action = await runtime.send_message(message, executor)
        message = AskedAction(action.trajectory, action.step, action.payload)
        verdict = await runtime.send_message(message, verifier)
        message = AskedVerdict(verdict.trajectory, verdict.step, verdict.score, verdict.payload)
        request = await runtime.send_message(message, coordinator)
        if not request.proceeds:
            return


async def run(variant, spec):
    global PHASE
    ended = asyncio.Event()
    PHASE = Phase(spec, ended.set)
    runtime = SingleThreadedAgentRuntime()
    for role, (agent, topic) in ROLES.items():
        await agent.register(runtime, role, lambda agent=agent, role=role: agent(role))
        if variant == "publish":
            await runtime.add_subscription(TypeSubscription(topic, role))
    runtime.start()
    # A task that nobody holds may be collected.
    tasks = set()

    def start(trajectory, step):
        key = str(trajectory) if spec.kind == "trios" else "0"
        request = Request(trajectory, step, PAYLOAD)
        if variant == "publish":
            return runtime.publish_message(request, TopicId("request", key))
        task = asyncio.create_task(ask(runtime, key, request))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return None

    return await drive(PHASE, start, ended)


report(run)
