"""The daemon in the eyes of OpenAI's own Python client, and of the libraries that are built on it (`frameworks.py`):
`run.py EXECUTABLE` starts a daemon and asks it for everything.

The executor is the reference algorithm, so no model is needed.
"""

import json
import sys
from pathlib import Path

import frameworks
from openai import BadRequestError, LengthFinishReasonError, NotFoundError, OpenAI

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import PATIENCE_S, Daemon, ask, program, until  # noqa: E402
from harness.daemon import REFERENCE  # noqa: E402

HANOI = {"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}}
# Takes minutes unless it is cancelled.
LONG = {"task": "tower-of-hanoi", "input": {"n": 30, "from": 0, "to": 2}}


def user(content):
    """The messages of a conversation in which the user has said `content`: a text, or what becomes JSON."""
    return [{"role": "user", "content": content if isinstance(content, str) else json.dumps(content)}]


def record(daemon, run):
    """A run's record."""
    return ask(daemon.address, "GET", f"/v1/runs/{run}")


def models(client, _):
    names = [model.id for model in client.models.list()]
    assert names == ["prime", "prime/careful", "prime/fast", "prime/reliable"], names
    model = client.models.retrieve("prime/fast")
    assert (model.id, model.object, model.owned_by) == ("prime/fast", "model", "prime-agents"), model


def whole(client, daemon):
    completion = client.chat.completions.create(model="prime/fast", messages=user(HANOI), seed=7)
    (choice,) = completion.choices
    run = record(daemon, completion.prime["run"])
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

    seeds = [record(daemon, choice.prime["run"])["seed"] for choice in completion.choices]
    assert [choice.index for choice in completion.choices] == [0, 1, 2], completion
    # The sign bit is dropped; the seeds of the choices follow each other, and 0 follows the largest.
    assert seeds == [2**63 - 1, 0, 1], seeds


def beside_the_messages(client, daemon):
    wish = {"prime": {"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "fanout": 2}}
    completion = client.chat.completions.create(model="prime", messages=user("Sort it, please."), extra_body=wish)
    assert json.loads(completion.choices[0].message.content)["sorted"] == [1, 2, 3], completion
    assert record(daemon, completion.prime["run"])["trajectories"] == 2


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

    run = record(daemon, steps[-1].prime["run"])
    assert len(reasoning) == run["steps"] == 7, reasoning
    assert json.loads(content) == run["answer"], content

    reasons = [chunk.choices[0].finish_reason for chunk in steps]
    assert reasons == [None] * (len(steps) - 1) + ["stop"], reasons


def budget(client, _):
    completion = client.chat.completions.create(model="prime", messages=user({**LONG, "budget": {"steps": 50}}))
    (choice,) = completion.choices
    assert (choice.finish_reason, choice.message.content) == ("length", None), choice
    assert "no answer" in choice.message.refusal, choice
    assert completion.prime["outcome"] == "steps_spent", completion.prime


def functions(client, _):
    function = {"name": "solved", "parameters": frameworks.Hanoi.model_json_schema()}
    forced = {"type": "function", "function": {"name": "solved"}}
    (choice,) = client.chat.completions.create(
        model="prime/fast", messages=user(HANOI), tools=[{"type": "function", "function": function}], tool_choice=forced
    ).choices
    assert choice.finish_reason == "tool_calls" and choice.message.content is None, choice
    frameworks.is_solved(choice.message.tool_calls[0].function.arguments)


def schemas(client, _):
    ask = {"model": "prime/fast", "response_format": frameworks.Hanoi}
    (choice,) = client.chat.completions.parse(messages=user(HANOI), **ask).choices
    frameworks.is_solved(choice.message.parsed)

    # The answer of another task does not follow the schema.
    (choice,) = client.chat.completions.parse(messages=user({"task": "n-queens"}), **ask).choices
    assert choice.message.parsed is None and "form" in choice.message.refusal, choice

    try:
        client.chat.completions.parse(messages=user({**LONG, "budget": {"steps": 50}}), **ask)
    except LengthFinishReasonError:
        pass
    else:
        raise AssertionError("no answer was taken for one")


def responses(client, daemon):
    response = client.responses.create(model="prime/fast", input=json.dumps(HANOI), instructions="Be exact.")
    frameworks.is_solved(response.output_text)
    assert response.status == "completed" and response.usage.total_tokens >= 0, response
    assert len(response.output[0].summary[0].text.splitlines()) == record(daemon, response.prime["run"])["steps"] == 7

    parsed = client.responses.parse(model="prime/fast", input=user(HANOI), text_format=frameworks.Hanoi)
    frameworks.is_solved(parsed.output_parsed)

    with client.responses.stream(model="prime/fast", input=json.dumps(HANOI)) as stream:
        kinds = [event.type for event in stream]
        frameworks.is_solved(stream.get_final_response().output_text)
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds

    spent = client.responses.create(model="prime", input=json.dumps({**LONG, "budget": {"steps": 50}}))
    assert (spent.status, spent.output_text) == ("incomplete", ""), spent


def missing(client, _):
    for request in [
        lambda: client.completions.create(model="prime", prompt="x"),
        lambda: client.embeddings.create(model="prime", input="x"),
    ]:
        try:
            request()
        except NotFoundError as error:
            assert "/v1/chat/completions" in error.message, error
        else:
            raise AssertionError("it is there")


def mistakes(client, _):
    for fields, kind, param, code in [
        ({"model": "gpt-4o"}, NotFoundError, None, "model_not_found"),
        ({"n": 17}, BadRequestError, "n", "invalid_value"),
        ({"temperature": 3}, BadRequestError, "temperature", "invalid_value"),
        ({"tool_choice": "required", "tools": []}, BadRequestError, "tool_choice", "invalid_value"),
        ({"messages": user("Solve Tower of Hanoi with 3 disks")}, BadRequestError, "messages[0].content", "invalid_value"),
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
    assert record(daemon, run)["status"] == "running"

    stream.close()
    until(lambda: record(daemon, run)["status"] != "running", "a run that nobody listens to ends")
    assert record(daemon, run)["status"] == "cancelled"


OWN = [models, whole, choices, beside_the_messages, streamed, budget, functions, schemas, responses, missing, mistakes]
CHECKS = [*OWN, gone, *frameworks.CHECKS]


def main():
    # A check is left out where its library is missing. Each environment has two libraries at least.
    assert len(frameworks.CHECKS) > 1, "libraries of requirements.txt or requirements-2.txt are missing"
    with Daemon(program(sys.argv[1]), REFERENCE) as daemon:
        client = OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0, timeout=PATIENCE_S)
        for check in CHECKS:
            check(client, daemon)
            print(f"ok  {check.__name__}")
    print(f"{len(CHECKS)} checks with OpenAI's client and libraries built on it passed")


if __name__ == "__main__":
    main()
