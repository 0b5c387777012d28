"""The daemon in the eyes of OpenAI's own Python client: `run.py EXECUTABLE` starts a daemon and asks it for everything.

The executor is the reference algorithm, so no model is needed.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request

from openai import BadRequestError, NotFoundError, OpenAI

# Longest wait for anything that must happen, in seconds.
PATIENCE = 60
HANOI = {"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}}
# Takes minutes if nobody ends it.
LONG = {"task": "tower-of-hanoi", "input": {"n": 30, "from": 0, "to": 2}}


def user(content):
    """Messages with this as the user's only one."""
    return [{"role": "user", "content": content if isinstance(content, str) else json.dumps(content)}]


class Daemon:
    """A daemon of its own, with its journal in a folder that goes with it."""

    def __init__(self, executable):
        self.folder = tempfile.TemporaryDirectory()
        sets = [
            "server.bind=127.0.0.1:0",
            "agents.executor.implementation=reference",
            f"journal.path={self.folder.name}/runs.sqlite",
        ]
        arguments = [executable, "serve"] + [word for option in sets for word in ("--set", option)]
        self.process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
        self.url = None
        for line in self.process.stderr:
            if "ready on http://" in line:
                self.url = line.strip().split("ready on ")[1]
                return
        raise RuntimeError("the daemon ended before it was ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        # It must not wait for somebody to read its log.
        self.process.communicate()
        self.folder.cleanup()

    def run(self, name):
        """A run's record."""
        with urllib.request.urlopen(f"{self.url}/v1/runs/{name}") as response:
            return json.load(response)


def models(client, _):
    names = [model.id for model in client.models.list()]
    assert names == ["prime", "prime/careful", "prime/fast", "prime/reliable"], names
    model = client.models.retrieve("prime/fast")
    assert (model.id, model.object, model.owned_by) == ("prime/fast", "model", "prime-agents"), model


def whole(client, daemon):
    completion = client.chat.completions.create(model="prime/fast", messages=user(HANOI), seed=7)
    (choice,) = completion.choices
    run = daemon.run(completion.prime["run"])
    assert choice.finish_reason == "stop" and choice.message.role == "assistant", choice
    assert json.loads(choice.message.content) == run["answer"], choice
    assert len(choice.message.reasoning_content.splitlines()) == run["steps"] == 7, choice
    assert completion.prime["verified"] is True and run["seed"] == 7, completion.prime
    assert completion.system_fingerprint, completion
    usage, tokens = completion.usage, run["tokens"]
    assert (usage.prompt_tokens, usage.completion_tokens) == (tokens["prompt"], tokens["completion"]), usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage


def choices(client, daemon):
    parts = [{"type": "text", "text": "Solve this:"}, {"type": "text", "text": f"```json\n{json.dumps(HANOI)}\n```"}]
    messages = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": parts}]
    completion = client.chat.completions.create(model="prime/fast", messages=messages, n=3, seed=-1, max_tokens=1000)
    seeds = [daemon.run(choice.prime["run"])["seed"] for choice in completion.choices]
    assert [choice.index for choice in completion.choices] == [0, 1, 2], completion
    assert seeds == [2**63 - 1, 0, 1], seeds


def beside_the_messages(client, daemon):
    wish = {"prime": {"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "fanout": 2}}
    completion = client.chat.completions.create(model="prime", messages=user("Sort it, please."), extra_body=wish)
    assert json.loads(completion.choices[0].message.content)["sorted"] == [1, 2, 3], completion
    assert daemon.run(completion.prime["run"])["trajectories"] == 2


def streamed(client, daemon):
    options = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(model="prime/fast", messages=user(HANOI), stream=True, stream_options=options)
    )
    *steps, end = chunks
    assert end.choices == [] and end.usage.total_tokens == end.usage.prompt_tokens + end.usage.completion_tokens, end
    deltas = [chunk.choices[0].delta for chunk in steps]
    assert deltas[0].role == "assistant" and steps[0].prime["run"] == steps[-1].prime["run"]
    reasoning = [delta.reasoning_content for delta in deltas if hasattr(delta, "reasoning_content")]
    content = "".join(delta.content or "" for delta in deltas)
    run = daemon.run(steps[-1].prime["run"])
    assert len(reasoning) == run["steps"] == 7, reasoning
    assert json.loads(content) == run["answer"], content
    reasons = [chunk.choices[0].finish_reason for chunk in steps]
    assert reasons == [None] * (len(steps) - 1) + ["stop"], reasons


def budget(client, _):
    completion = client.chat.completions.create(model="prime", messages=user({**LONG, "budget": {"steps": 50}}))
    (choice,) = completion.choices
    assert (choice.finish_reason, choice.message.content, choice.message.refusal) == ("length", "", None), choice
    assert completion.prime["outcome"] == "steps_spent", completion.prime


def mistakes(client, _):
    for fields, kind, param, code in [
        ({"model": "gpt-4o"}, NotFoundError, None, "model_not_found"),
        ({"n": 17}, BadRequestError, "n", "invalid_value"),
        ({"temperature": 3}, BadRequestError, "temperature", "invalid_value"),
        ({"tool_choice": "required", "tools": []}, BadRequestError, "tool_choice", "invalid_value"),
        ({"messages": user({"task": "n-quens"})}, BadRequestError, "messages[0].content", "invalid_value"),
    ]:
        try:
            client.chat.completions.create(**{"model": "prime", "messages": user(HANOI), **fields})
        except kind as error:
            assert (error.param, error.code) == (param, code), (fields, error)
        else:
            raise AssertionError(f"{fields} was taken")


def gone(client, daemon):
    stream = client.chat.completions.create(model="prime", messages=user(LONG), stream=True)
    # The first chunk has no step yet; the next ones have.
    started = [next(stream) for _ in range(3)]
    assert started[-1].choices[0].delta.reasoning_content, started
    run = started[0].prime["run"]
    assert daemon.run(run)["status"] == "running"
    stream.close()
    deadline = time.monotonic() + PATIENCE
    while daemon.run(run)["status"] == "running":
        assert time.monotonic() < deadline, "the run goes on although nobody listens"
    assert daemon.run(run)["status"] == "cancelled"


CHECKS = [models, whole, choices, beside_the_messages, streamed, budget, mistakes, gone]


def main():
    with Daemon(sys.argv[1]) as daemon:
        client = OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0, timeout=PATIENCE)
        for check in CHECKS:
            check(client, daemon)
            print(f"ok  {check.__name__}")
    print(f"{len(CHECKS)} checks with OpenAI's client passed")


if __name__ == "__main__":
    main()
