"""langgraph with its PostgreSQL checkpointer: a graph of three nodes, each checkpoint written before the next node runs."""

from typing import TypedDict

from common import PAYLOAD, measure, report
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool


class State(TypedDict):
    payload: str
    score: float
    proceeds: bool


def graph(window):
    async def executor(state):
        return {"payload": state["payload"]}

    async def verifier(_state):
        return {"score": 0.0}

    async def coordinator(_state):
        return {"proceeds": window.is_open()}

    nodes = StateGraph(State)
    for name, function in (("executor", executor), ("verifier", verifier), ("coordinator", coordinator)):
        nodes.add_node(name, function)
    nodes.add_edge(START, "executor")
    nodes.add_edge("executor", "verifier")
    nodes.add_edge("verifier", "coordinator")
    nodes.add_conditional_edges("coordinator", lambda state: "executor" if state["proceeds"] else END, ["executor", END])
    return nodes


async def run(url, trajectories, seconds):
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, min_size=1, max_size=min(trajectories, 32), kwargs=options, open=False) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()

        async def walk(window, index):
            app = graph(window).compile(checkpointer=saver)
            config = {"recursion_limit": 1_000_000, "configurable": {"thread_id": f"{seconds}-{trajectories}-{index}"}}
            await app.ainvoke({"payload": PAYLOAD, "score": 0.0, "proceeds": True}, config, durability="sync")

        return await measure(walk, trajectories, seconds)


report(run)
