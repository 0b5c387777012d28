"""Step environments as servers: OpenEnv's client and the Open Reward Standard's speak to ours."""

import asyncio
import threading

import uvicorn
from openenv import GenericEnvClient
from openreward.environments import Server

from prime_bench import Instance, StepEnv
from prime_bench.integrations import openenv, ors

INSTANCE = {"task": "bubble-sort", "difficulty": "easy", "index": 2, "base_seed": 1000}


class Served:
    """An application on a port of its own."""

    def __init__(self, app):
        self.server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        started = threading.Event()
        startup = self.server.startup

        async def announced(sockets=None):
            await startup(sockets=sockets)
            started.set()

        self.server.startup = announced
        self.thread.start()
        assert started.wait(60), "the server did not start"
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()


def expected():
    """The rewards of the reference's steps, by the environment itself."""
    instance = Instance(*INSTANCE.values())
    env = StepEnv(instance)
    env.reset()
    return instance.reference(), [env.step(line)[1] for line in instance.reference()]


def open_env():
    lines, rewards = expected()
    with Served(openenv.app) as url, GenericEnvClient(base_url=url).sync() as client:
        first = client.reset(**INSTANCE)
        assert first.observation["state"] and "Bubble" in first.observation["prompt"], first
        wrong = client.step({"line": "compare them"})
        assert wrong.reward < 0 and wrong.observation["refusal"] == "not an action line" and not wrong.done
        client.reset(**INSTANCE)
        results = [client.step({"line": line}) for line in lines]
        assert [result.reward for result in results] == rewards
        assert [result.done for result in results] == [False] * (len(lines) - 1) + [True]
        assert client.state()["step_count"] == len(lines)
        with GenericEnvClient(base_url=url).sync() as other:
            assert other.reset(task="n-queens").observation["state"] != first.observation["state"]


def open_reward():
    lines, rewards = expected()
    assert len(ors.PrimeBench.list_tasks("hard")) % ors.INSTANCES == 0
    environment = ors.PrimeBench(INSTANCE)
    assert "Bubble" in environment.get_prompt()[0].text
    assert [tool.name for tool in ors.PrimeBench.list_tools().tools] == ["step"]

    async def play():
        return [await environment._call_tool("step", {"line": line}) for line in lines]

    outputs = [result.root.output for result in asyncio.run(play())]
    assert [output.reward for output in outputs] == rewards
    assert [output.finished for output in outputs] == [False] * (len(lines) - 1) + [True]
    assert Server([ors.PrimeBench]).app.routes


for check in (open_env, open_reward):
    check()
    print(f"ok  {check.__name__}")
