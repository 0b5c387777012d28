"""The reward function of verl: `reward.custom_reward_function.path=pkg://prime_bench.integrations.verl`,
`reward.custom_reward_function.name=compute_score`.

Needs nothing of verl. Rows are those of `prime-agents data grpo`: verl passes `reward_model.ground_truth`, which names the
instance, and `extra_info`. verl keeps one number for a completion and puts it on its last token; the rewards of the steps
are in `step_rewards`, which it logs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from prime_bench import composite_reward, judge
from prime_bench.dataset import instance_of


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **reward_kwargs: Any,
) -> dict[str, Any]:
    """The paper's composite reward of a completion as `score`, whether its answer is right as `acc`.

    `reward_kwargs` (`reward.custom_reward_function.reward_kwargs`): `kinds` and `weights` of `prime_bench.composite_reward`.

    Raises ValueError where `ground_truth` names no instance.
    """
    try:
        instance = instance_of(json.loads(ground_truth))
    except (TypeError, json.JSONDecodeError, AttributeError) as error:
        raise ValueError("ground_truth: expected JSON with task, difficulty, index and base_seed") from error
    rules = {name: reward_kwargs[name] for name in ("kinds", "weights") if name in reward_kwargs}
    reward = composite_reward(solution_str, instance, **rules)
    right = judge(solution_str, instance, kinds="format").correct
    return {"score": reward.total, "acc": float(right), "steps": len(reward.steps), "step_rewards": json.dumps(reward.steps)}
