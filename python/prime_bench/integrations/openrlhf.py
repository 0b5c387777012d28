"""The reward function and the multi-turn agent of OpenRLHF: `--reward.remote_url` and `--train.agent_func_path` with the path
of this file (`python -c "import prime_bench.integrations.openrlhf as m; print(m.__file__)"`).

Rows are those of `prime-agents data grpo`, for the agent with `--style turns`, and `--data.input_key prompt --data.label_key
label`. Importing this needs torch, as OpenRLHF takes tensors; the agent needs OpenRLHF.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch

from prime_bench import composite_reward, judge
from prime_bench.dataset import instance_of
from prime_bench.integrations._episode import Episode, action_line


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_more: Any) -> dict[str, Any]:
    """The paper's composite reward of each completion as `rewards`, whether its answer is right as `scores`.

    A query is a prompt with its completion.
    """
    totals, right = [], []
    for query, prompt, label in zip(queries, prompts, labels, strict=True):
        instance, completion = instance_of(json.loads(label)), query.removeprefix(prompt)
        totals.append(composite_reward(completion, instance).total)
        right.append(float(judge(completion, instance, kinds="format").correct))
    scores = torch.tensor(right)
    return {"rewards": torch.tensor(totals), "scores": scores, "extra_logs": {"correct": scores}}


try:
    from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor
except ImportError:  # only the reward function
    pass
else:

    class AgentInstance(AgentInstanceBase):  # type: ignore[misc]  # it has no types
        """An episode: each turn of the model is one line."""

        def __init__(self, *_args: Any, **_more: Any) -> None:
            self.episode: Episode | None = None

        async def reset(self, states: dict[str, Any], **_more: Any) -> dict[str, Any]:
            # The prompt has the first state, and may end with the beginning of the model's turn: nothing is added.
            self.episode = Episode(instance_of(json.loads(states["label"])))
            return {"observation": states["observation"]}

        async def step(self, states: dict[str, Any], **_more: Any) -> dict[str, Any]:
            if self.episode is None:
                raise ValueError("step: the episode was not reset")
            turn = self.episode.step(action_line(states["action_text"]))
            return {
                # OpenRLHF adds these up.
                "rewards": torch.tensor(turn.reward),
                "scores": torch.tensor(self.episode.total()),
                "environment_feedback": f"\n{turn.text}\n",
                "done": turn.done,
                "sampling_params": states.get("sampling_params"),
                "extra_logs": {"steps": torch.tensor(float(len(self.episode.rewards)))},
            }

    class AgentExecutor(MultiTurnAgentExecutor):  # type: ignore[misc]
        """What `--train.agent_func_path` looks for."""

        def __init__(self) -> None:
            super().__init__(AgentInstance)
