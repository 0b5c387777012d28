"""An agent loop of verl (0.9): the model takes one step a turn, and each has its reward.

A file `prime.yaml` registers it: `- {name: prime, _target_: prime_bench.integrations.verl_agent.PrimeAgentLoop}`; then
`actor_rollout_ref.rollout.agent.agent_loop_config_path=prime.yaml` and
`actor_rollout_ref.rollout.agent.default_agent_loop=prime`. Rows are those of `prime-agents data grpo`: of these the loop
reads `extra_info`, which names the instance; it writes prompts of its own.
"""

# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False
# The package may be missing where types are checked.
from __future__ import annotations

from typing import Any
from uuid import uuid4

import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput
from verl.utils.profiler import simple_timer

from prime_bench.dataset import instance_of

from ._episode import Episode, action_line


class PrimeAgentLoopOutput(AgentLoopOutput):
    """A trajectory with the rewards of its steps, each at the last token of its turn.

    verl's trainer takes them so where it reads outputs by `as_dict` (`trainer.use_v1`); elsewhere it puts `reward_score` on the
    last token.
    """

    def as_dict(self) -> dict[str, Any]:
        output: dict[str, Any] = super().as_dict()
        places, rewards = self.extra_fields["turn_ends"], self.extra_fields["turn_scores"]
        scores = torch.zeros(len(self.response_ids), dtype=torch.float32)
        for place, reward in zip(places, rewards, strict=True):
            # What was cut off is still paid for, at the end.
            scores[min(place, len(self.response_ids) - 1)] += reward
        output["rm_scores"] = scores
        return output


class PrimeAgentLoop(AgentLoopBase):
    """Plays an episode: a turn of the model is a line, and the answer to it the state after it."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> PrimeAgentLoopOutput:
        response_length: int = self.rollout_config.response_length
        episode = Episode(instance_of(row["extra_info"]))
        messages = [{"role": "user", "content": episode.instructions}]
        tokens = await self.ct_build_initial_tokens(messages)
        prompt_length = len(tokens)
        metrics: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        mask: list[int] = []
        logprobs: list[float] | None = None
        request, ends = uuid4().hex, []
        while True:
            with simple_timer("generate_sequences", metrics):
                reply = await self.server_manager.generate(
                    request_id=request, prompt_ids=tokens, sampling_params=sampling_params
                )
            if reply.log_probs and logprobs is None:
                logprobs = [0.0] * len(mask)
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                tokens, reply.token_ids, mask, logprobs, reply.log_probs if logprobs is not None else None
            )
            tokens = merged.token_ids
            extra.update(reply.extra_fields)
            text = self.tokenizer.decode(reply.token_ids, skip_special_tokens=True)
            turn = episode.step(action_line(text))
            ends.append(len(mask) - 1)
            if turn.done or len(mask) >= response_length:
                break
            before = [*messages, {"role": "assistant", "content": text}]
            messages = [*before, {"role": "user", "content": turn.text}]
            merged, mask, logprobs = await self.ct_merge_context_msg(before, messages, tokens, mask, logprobs)
            tokens = merged.token_ids
            if len(mask) >= response_length:
                break
        extra.update(turn_scores=list(episode.rewards), turn_ends=ends, tool_rewards=[])
        return PrimeAgentLoopOutput(
            prompt_ids=tokens[: len(tokens) - len(mask)] if mask else tokens[:prompt_length],
            response_ids=tokens[len(tokens) - len(mask) :][:response_length],
            response_mask=mask[:response_length],
            response_logprobs=logprobs[:response_length] if logprobs is not None else None,
            reward_score=sum(episode.rewards),
            num_turns=2 * len(episode.rewards) + 1,
            metrics=AgentLoopMetrics(**metrics),
            extra_fields=extra,
        )
