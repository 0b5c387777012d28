"""The daemon in the eyes of libraries that are built on OpenAI's client, each as its documentation shows it first.

They need two versions of the client, so each environment has some of them, and a check imports its library itself.
"""

import importlib.util
import json
import os

from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

MODEL = "prime/fast"
QUESTION = json.dumps({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}})
# Its budget ends it before there is an answer.
HOPELESS = json.dumps({"task": "tower-of-hanoi", "input": {"n": 30, "from": 0, "to": 2}, "budget": {"steps": 50}})
MESSAGES = [{"role": "user", "content": QUESTION}]


class Hanoi(BaseModel):
    """The answer to Tower of Hanoi."""

    moves: int
    disk_moves: list[int]
    pair_moves: list[int]
    pegs: list[list[int]]


def is_solved(answer):
    """Whether 3 disks were moved in 7 moves."""
    answer = answer if isinstance(answer, Hanoi) else Hanoi.model_validate_json(answer)
    assert (answer.moves, answer.pegs) == (7, [[], [], [3, 2, 1]]), answer


def with_litellm(client, _):
    # Otherwise it asks another host for prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    ask = {"model": f"openai/{MODEL}", "api_base": str(client.base_url), "api_key": "none", "messages": MESSAGES}
    (choice,) = litellm.completion(**ask).choices
    assert choice.finish_reason == "stop", choice
    is_solved(choice.message.content)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in litellm.completion(**ask, stream=True))
    is_solved(text)
    function = {"name": "solved", "parameters": Hanoi.model_json_schema()}
    (choice,) = litellm.completion(
        **ask, tools=[{"type": "function", "function": function}], tool_choice="required"
    ).choices
    is_solved(choice.message.tool_calls[0].function.arguments)
    (choice,) = litellm.completion(**{**ask, "messages": [{"role": "user", "content": HOPELESS}]}).choices
    assert (choice.finish_reason, choice.message.content) == ("length", None), choice


def with_langchain(client, _):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=str(client.base_url), api_key="none", max_retries=0)
    is_solved(model.invoke(QUESTION).content)
    is_solved("".join(chunk.content for chunk in model.stream(QUESTION)))
    for method in ["function_calling", "json_schema"]:
        is_solved(model.with_structured_output(Hanoi, method=method).invoke(QUESTION))


def with_pydantic_ai(client, _):
    from pydantic_ai import Agent, capture_run_messages
    from pydantic_ai.exceptions import UnexpectedModelBehavior
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=str(client.base_url), api_key="none"))
    is_solved(Agent(model).run_sync(QUESTION).output)
    # By a forced function.
    agent = Agent(model, output_type=Hanoi, retries=0)
    is_solved(agent.run_sync(QUESTION).output)
    with capture_run_messages() as messages:
        try:
            agent.run_sync(HOPELESS)
        except UnexpectedModelBehavior:
            # It calls every refusal `content_filter`, and shows what the refusal says.
            assert "steps_spent" in messages[-1].provider_details["refusal"], messages[-1]
        else:
            raise AssertionError("no answer was taken for one")


def with_agents(client, _):
    import agents

    agents.set_tracing_disabled(True)
    asynchronous = AsyncOpenAI(base_url=client.base_url, api_key="none", max_retries=0)
    model = agents.OpenAIResponsesModel(model=MODEL, openai_client=asynchronous)
    agent = agents.Agent(name="solver", instructions="Be exact.", model=model)
    is_solved(agents.Runner.run_sync(agent, QUESTION).final_output)
    is_solved(agents.Runner.run_sync(agent.clone(output_type=Hanoi), QUESTION).final_output)
    chat = agents.OpenAIChatCompletionsModel(model=MODEL, openai_client=asynchronous)
    is_solved(agents.Runner.run_sync(agent.clone(model=chat), QUESTION).final_output)


def with_instructor(client, _):
    import instructor

    plain = OpenAI(base_url=client.base_url, api_key="none", max_retries=0)
    for mode in [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA]:
        asked = instructor.from_openai(plain, mode=mode)
        is_solved(
            asked.chat.completions.create(model=MODEL, response_model=Hanoi, messages=MESSAGES, max_retries=0)
        )


LIBRARIES = {
    "litellm": with_litellm,
    "langchain_openai": with_langchain,
    "pydantic_ai": with_pydantic_ai,
    "agents": with_agents,
    "instructor": with_instructor,
}
# The checks whose library this environment has.
CHECKS = [check for library, check in LIBRARIES.items() if importlib.util.find_spec(library)]
