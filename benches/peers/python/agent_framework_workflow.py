"""agent-framework-core: a workflow of three executors and three edges for each trajectory, as a workflow takes one
message at a time. Variant `memory`: no checkpoints; `files`: one in a file after each superstep, three for a step."""

from contextlib import ExitStack

from agent_framework import Executor, FileCheckpointStorage, WorkflowBuilder, WorkflowContext, handler

from common import PAYLOAD, Action, Folder, Phase, Request, Verdict, execute, gather, report, verify

# The framework checkpoints executors, so that they do not hold this.
PHASE = None


class Proposes(Executor):
    @handler
    async def handle(self, message: Request, ctx: WorkflowContext[Action]) -> None:
        await ctx.send_message(execute(message))


class Verifies(Executor):
    @handler
    async def handle(self, message: Action, ctx: WorkflowContext[Verdict]) -> None:
        await ctx.send_message(verify(message))


class Decides(Executor):
    @handler
    async def handle(self, message: Verdict, ctx: WorkflowContext[Request]) -> None:
        request = PHASE.decide(message)
        if request is not None:
            await ctx.send_message(request)


def workflow(spec, storage):
    executor, verifier, coordinator = Proposes(id="executor"), Verifies(id="verifier"), Decides(id="coordinator")
    supersteps = 3 * spec.steps + 100
    builder = WorkflowBuilder(start_executor=executor, max_iterations=supersteps, checkpoint_storage=storage)
    builder.add_edge(executor, verifier).add_edge(verifier, coordinator).add_edge(coordinator, executor)
    return builder.build()


async def run(variant, spec):
    global PHASE
    if spec.kind == "shared":
        return None
    PHASE = Phase(spec)
    with ExitStack() as stack:
        storage = None
        if variant == "files":
            types = [f"common:{message.__name__}" for message in (Request, Action, Verdict)]
            storage = FileCheckpointStorage(stack.enter_context(Folder()), allowed_checkpoint_types=types)
        workflows = [workflow(spec, storage) for _ in range(spec.trajectories)]

        def trajectory(index, first, _target):
            return workflows[index].run(Request(index, first, PAYLOAD))

        return await gather(PHASE, trajectory)


report(run)
