"""The tools of `prime-agents mcp` in the eyes of the protocol's official Python client: `run.py EXECUTABLE` speaks to it
over stdio, in process and with the runs of a daemon, and to a daemon over streamable HTTP, with and without a key.

Works with both major versions of the client. The executor is the reference algorithm, so no model is needed.
"""

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import Daemon, program, set_options  # noqa: E402
from harness.daemon import REFERENCE  # noqa: E402

HANOI = {"task": "tower-of-hanoi", "input": {"n": 2, "from": 0, "to": 2}}
TOOLS = {
    "list_tasks",
    "describe_task",
    "make_instance",
    "judge_step",
    "check_answer",
    "start_run",
    "list_runs",
    "read_run",
    "watch_run",
    "cancel_run",
    "retry_run",
    "list_approvals",
    "decide_approval",
}


@asynccontextmanager
async def stdio(executable, *arguments, **environment):
    """A session with a process of its own. Version 2 of the client speaks without sessions (2026-07-28), version 1 with."""
    parameters = StdioServerParameters(command=executable, args=["mcp", *arguments], env={**os.environ, **environment})
    if hasattr(mcp, "Client"):
        async with mcp.Client(stdio_client(parameters)) as session:
            yield session
    else:
        async with stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            yield session


@asynccontextmanager
async def http(url, key=None):
    """A session with a daemon."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if hasattr(mcp, "Client"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with httpx2.AsyncClient(headers=headers, timeout=60) as client:
            async with mcp.Client(streamable_http_client(url, http_client=client)) as session:
                yield session
    else:
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(url, headers=headers) as (read, write, _):
            async with mcp.ClientSession(read, write) as session:
                await session.initialize()
                yield session


def field(result, name):
    """A field of a result: version 2 of the client names it `like_this`, version 1 `likeThis`."""
    first, *rest = name.split("_")
    camel = first + "".join(word.title() for word in rest)
    return getattr(result, name, None) if hasattr(result, name) else getattr(result, camel)


async def call(session, name, **arguments):
    result = await session.call_tool(name, arguments)
    assert not field(result, "is_error"), (name, result)
    structured = field(result, "structured_content")
    assert json.loads(result.content[0].text) == structured, name
    return structured


async def refused(session, part, name, **arguments):
    result = await session.call_tool(name, arguments)
    assert field(result, "is_error") and part in result.content[0].text, (name, arguments, result)


async def solve(session):
    """Solves an instance as a client's model would: line by line, with the states that come back."""
    listed = (await session.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS, listed
    assert all(field(tool, "input_schema")["type"] == "object" and tool.description for tool in listed)

    tasks = (await call(session, "list_tasks"))["tasks"]
    assert len({task["task"] for task in tasks}) == len(tasks) > 0 and tasks[0]["sizes"]["easy"], tasks[:1]
    sorts = (await call(session, "list_tasks", category="comparison-sorting"))["tasks"]
    assert 0 < len(sorts) < len(tasks) and all(task["category"] == "comparison-sorting" for task in sorts)

    page = await call(session, "describe_task", task="tower-of-hanoi")
    assert page["actions"] and page["constraints"] and page["algorithm"], page

    made = await call(session, "make_instance", **HANOI)
    assert made["input"]["n"] == 2 and "<actions>" in made["prompt"], made
    state = made["state"]
    for line, score in [("move 1 0 1", 0.0), ("move 2 0 2", 0.0), ("move 1 1 2", 0.0)]:
        verdict = await call(session, "judge_step", **HANOI, state=state, action=line)
        assert verdict["applicable"] and verdict["score"] == score, (line, verdict)
        state = verdict["state"]

    while not verdict["ended"]:
        verdict = await call(session, "judge_step", **HANOI, state=state, action="done")

    right = await call(session, "check_answer", **HANOI, answer=verdict["answer"])
    assert right["right"], right

    wrong = await call(session, "judge_step", **HANOI, actions=["move 1 0 1"], action="move 2 0 1")
    assert wrong["score"] > 0 or not wrong["applicable"], wrong


async def run(session):
    """Starts a run, follows it to its end, and cancels another."""
    started = await call(session, "start_run", task="tower-of-hanoi", difficulty="easy", index=1, fanout=1)
    after, events, record = 0, [], started
    # Bounded, so that a run that hangs is a failure and not a wait for ever.
    for _ in range(1000):
        watched = await call(session, "watch_run", run=started["id"], after=after, wait_ms=5000)
        events += watched["events"]
        after, record = watched["after"], watched["run"]
        if record["status"] not in ("queued", "running"):
            break

    rest = await call(session, "watch_run", run=started["id"], after=after)
    events += rest["events"]

    assert record["status"] == "verified", record
    numbers = [event["seq"] for event in events]
    assert numbers == list(range(1, len(numbers) + 1)), numbers
    assert sum(event["event"] == "step" for event in events) == record["steps"], record
    assert (await call(session, "read_run", run=started["id"]))["answer"] == record["answer"]
    assert started["id"] in [run["id"] for run in (await call(session, "list_runs", limit=5))["runs"]]

    long = await call(session, "start_run", task="tower-of-hanoi", input={"n": 30, "from": 0, "to": 2})
    ended = await call(session, "cancel_run", run=long["id"])
    assert ended["status"] in ("cancelled", "running"), ended


async def mistakes(session):
    await refused(session, "bubble-sort", "describe_task", task="bubble-sor")
    await refused(session, "index", "make_instance", task="bubble-sort", index=5000)
    await refused(session, "style", "make_instance", task="n-queens", style="sorting")
    await refused(session, "`action` is missing", "judge_step", **HANOI)
    await refused(session, "state", "judge_step", **HANOI, state={"x": 1}, action="move 1 0 2")
    await refused(session, "category", "list_tasks", category="sorting-hats")
    await refused(session, "unknown field", "list_tasks", kind="x")
    await refused(session, "fanout", "start_run", task="n-queens", fanout=0)
    await refused(session, "no run", "read_run", run="run_0")
    await refused(session, "../tasks", "read_run", run="../tasks")

    try:
        await session.call_tool("solve_everything", {})
    except Exception as error:
        assert "list_tasks" in str(error), error
    else:
        raise AssertionError("there is such a tool")


async def everything(session):
    for check in (solve, run, mistakes):
        await check(session)


def new_key(executable, config):
    """Makes a key for a client, writes a configuration that accepts it, and returns it."""
    made = subprocess.run([executable, "key", "new", "ann"], capture_output=True, text=True, check=True).stdout
    key = next(word.strip('"') for word in made.split() if word.strip('"').startswith("prime_"))
    digest = next(line.split('"')[1] for line in made.splitlines() if "sha256" in line)
    config.write_text(f'[[server.keys]]\nname = "ann"\nsha256 = "{digest}"\n')
    return key


async def in_process(executable, folder):
    """Over stdio, with runs that the process of the tools executes itself."""
    settings = set_options([REFERENCE, f"journal.path={folder}/own.sqlite"])
    async with stdio(executable, *settings) as session:
        await everything(session)
    print("ok  stdio, with runs in process")

    async with stdio(executable, *settings) as session:
        # The journal outlives the process.
        runs = (await call(session, "list_runs"))["runs"]
        assert len(runs) == 2 and all(run["status"] in ("verified", "cancelled") for run in runs), runs
    print("ok  stdio again, with the same journal")


async def of_a_daemon(executable, folder):
    """Over stdio and over HTTP, with the runs of a daemon."""
    with Daemon(executable, REFERENCE, folder=folder) as daemon:
        async with stdio(executable, "--url", daemon.url) as session:
            await everything(session)
        print("ok  stdio, with the runs of a daemon")

        async with http(f"{daemon.url}/mcp") as session:
            await everything(session)
        print("ok  streamable HTTP")


async def with_keys(executable, folder):
    """A daemon that asks for keys serves the clients that have one, and no others."""
    config = Path(folder) / "keys.toml"
    key = new_key(executable, config)
    with Daemon(executable, REFERENCE, folder=folder, config=config) as daemon:
        async with http(f"{daemon.url}/mcp", key) as session:
            await run(session)
        async with stdio(executable, "--url", daemon.url, PRIME_API_KEY=key) as session:
            await run(session)

        try:
            async with http(f"{daemon.url}/mcp") as session:
                await session.list_tools()
        except Exception as error:
            print(f"ok  without a key: {type(error).__name__}")
        else:
            raise AssertionError("a client without a key was served")
        print("ok  keys")


async def main(executable):
    with tempfile.TemporaryDirectory() as folder:
        for check in (in_process, of_a_daemon, with_keys):
            await check(executable, folder)
    print(f"the tools work with the client's version {importlib.metadata.version('mcp')}")


if __name__ == "__main__":
    asyncio.run(main(program(sys.argv[1])))
