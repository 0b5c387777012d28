"""langgraph: a graph of three nodes with a conditional edge back to the executor; a trajectory is a run of the graph.

Variants: `invoke` (no asyncio), `ainvoke`, `sqlite` (AsyncSqliteSaver with the default durability, by which nodes run
ahead of the writer), `sqlite-sync` (durability "sync"). A step is three supersteps, a checkpoint is of a superstep."""

import os
from contextlib import AsyncExitStack
from typing import TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from common import PAYLOAD, Folder, Phase, Stopwatch, Verdict, gather, report


class State(TypedDict):
    trajectory: int
    step: int
    target: int
    payload: str
    action: str
    score: float


def graph(phase, is_async):
    def executor(state):
        return {"action": state["payload"]}

    def verifier(_state):
        return {"score": 0.0}

    def coordinator(state):
        phase.decide(Verdict(state["trajectory"], state["step"], state["score"], state["payload"]))
        return {"step": state["step"] + 1, "payload": state["action"]}

    def awaited(function):
        async def node(state):
            return function(state)

        return node

    nodes = StateGraph(State)
    for name, function in (("executor", executor), ("verifier", verifier), ("coordinator", coordinator)):
        nodes.add_node(name, awaited(function) if is_async else function)
    nodes.add_edge(START, "executor")
    nodes.add_edge("executor", "verifier")
    nodes.add_edge("verifier", "coordinator")
    way = lambda state: "executor" if state["step"] < state["target"] else END
    nodes.add_conditional_edges("coordinator", way, ["executor", END])
    return nodes


def arguments(spec, index, first, target):
    state = {"trajectory": index, "step": first, "target": target, "payload": PAYLOAD, "action": "", "score": 0.0}
    limit = 3 * (spec.warm + spec.steps) + 100
    return state, {"recursion_limit": limit, "configurable": {"thread_id": f"{first}-{index}"}}


def run_blocking(spec):
    if not spec.is_timed:
        return None
    phase = Phase(spec)
    app = graph(phase, False).compile()
    for first, target in phase.laps():
        phase.begin(target)
        stopwatch = Stopwatch()
        app.invoke(*arguments(spec, 0, first, target))
        entry = stopwatch.measured(phase)
    return entry


async def run_async(variant, spec):
    phase = Phase(spec)
    async with AsyncExitStack() as stack:
        saver, options = None, {}
        if variant.startswith("sqlite"):
            path = os.path.join(stack.enter_context(Folder()), "checkpoints.sqlite")
            saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(path))
        if variant == "sqlite-sync":
            options["durability"] = "sync"
        app = graph(phase, True).compile(checkpointer=saver)

        def trajectory(index, first, target):
            return app.ainvoke(*arguments(spec, index, first, target), **options)

        return await gather(phase, trajectory)


def run(variant, spec):
    if spec.kind == "shared":
        return None
    return run_blocking(spec) if variant == "invoke" else run_async(variant, spec)


report(run)
