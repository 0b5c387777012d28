"""verl and OpenRLHF play our environments and ask our reward functions, by their own code: `verl_loop.py PRIME`.

What generates is a script instead of a server with a GPU: it writes the reference's lines, or wrong ones. verl's worker, its
tokens, its reward manager and its data are the package's own; of OpenRLHF, which cannot be installed without a GPU, its agents.
"""

import asyncio
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import numpy as np
from hydra import compose, initialize_config_dir
from pages import blocks_of, program
from tiny_model import DIALOGUE, DIALOGUE_TOKENS, configuration, tokenizer_of

from prime_bench import StepEnv, composite_reward
from prime_bench.dataset import instance_of

TASK = "gcd-euclidean"
RESPONSE = 2048


def saved(folder, texts):
    """A folder with a tokenizer and a configuration, as those of a model."""
    tokenizer = tokenizer_of(texts, DIALOGUE, (*DIALOGUE_TOKENS, "<|system|>"))
    tokenizer.save_pretrained(folder)
    configuration(tokenizer).save_pretrained(folder)
    return tokenizer


def exported(prime, folder, style):
    """Rows of `prime-agents data grpo`."""
    out = folder / style
    small = ["--task", TASK, "--difficulty", "easy", "--instances", "3", "--style", style]
    subprocess.run([prime, "data", "grpo", "--out", out, *small], check=True, capture_output=True)
    return str(out / "data" / f"{TASK}.parquet")


def commands():
    """The options of each command on the page that starts verl."""
    (block,) = blocks_of("verl")
    found = [line.split() for line in block.replace("\\\n", " ").splitlines()]
    assert all(words[:3] == ["python", "-m", "verl.trainer.main_ppo"] for words in found), found
    return [words[3:] for words in found]


def configured(model, train, options):
    """verl's own configuration with the page's options, but with this test's data."""
    import verl.trainer

    options = [option for option in options if not option.startswith("data.train_files=")]

    with initialize_config_dir(str(pathlib.Path(verl.trainer.__file__).parent / "config"), version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={model}",
                f"data.train_files={train}",
                "data.max_prompt_length=2048",
                f"data.max_response_length={RESPONSE}",
                "actor_rollout_ref.rollout.name=vllm",
                "actor_rollout_ref.rollout.calculate_log_probs=True",
                *options,
            ],
        )


class Scripted:
    """Generates what is planned for the turns of each prompt; requests come in any order."""

    def __init__(self, tokenizer, plans):
        self.tokenizer, self.plans, self.turns, self.prompts = tokenizer, plans, {}, {}

    async def generate(self, request_id, *, prompt_ids, sampling_params, **_more):
        from verl.workers.rollout.replica import TokenOutput

        assert sampling_params["logprobs"] is True, sampling_params
        if request_id not in self.turns:
            asked = self.tokenizer.decode(prompt_ids, skip_special_tokens=True)
            (self.turns[request_id],) = [list(plan) for prompt, plan in self.plans.items() if prompt in asked]
        else:
            assert prompt_ids[: len(self.prompts[request_id])] == self.prompts[request_id], "tokens of before stay"
        self.prompts[request_id] = prompt_ids
        text = self.turns[request_id].pop(0)
        tokens = self.tokenizer(text, add_special_tokens=False)["input_ids"] + [self.tokenizer.eos_token_id]
        return TokenOutput(token_ids=tokens, log_probs=[-0.5] * len(tokens))


def rewards_of(instance, lines):
    """The rewards of a trace in a step environment of the package."""
    env = StepEnv(instance)
    return [env.step(line)[1] for line in lines]


def loop(folder, tokenizer, rows, config):
    """The rows played by verl's worker."""
    from verl import DataProto
    from verl.experimental.agent_loop.agent_loop import AgentLoopWorker

    instances = [instance_of(row["extra_info"]) for row in rows]
    right = [instance.reference() for instance in instances]
    lines = [right[0], ["nonsense", *right[1]], right[2]]
    plans = [[f"I think.\n{line}" for line in of] for of in lines]

    columns = {name: np.array([row[name] for row in rows] + [None], dtype=object)[:-1] for name in rows[0]}
    prompts = [instance.prompt("turns") for instance in instances]
    script = Scripted(tokenizer, dict(zip(prompts, plans, strict=True)))
    worker = AgentLoopWorker(config, script)
    batch = DataProto(batch=None, non_tensor_batch=columns, meta_info={"global_steps": 1})
    found = asyncio.run(worker.generate_sequences(batch))

    width = found.batch["prompts"].shape[1]
    for place, instance in enumerate(instances):
        expected = rewards_of(instance, lines[place])
        assert list(found.non_tensor_batch["turn_scores"][place]) == expected
        scores = found.batch["rm_scores"][place]
        assert abs(scores.sum().item() - sum(expected)) < 1e-5, (scores.sum(), expected)
        # The mask tells what the model wrote from what it was told.
        mask, tokens = found.batch["response_mask"][place].bool(), found.batch["responses"][place]
        written = tokenizer.decode(tokens[mask].tolist(), skip_special_tokens=True)
        assert written == "".join(plans[place]), written
        told = tokenizer.decode(tokens[~mask].tolist(), skip_special_tokens=True)
        assert told.count("State: ") == len(lines[place]) - 1 and ("not an action" in told) == (place == 1), told
        logprobs = found.batch["rollout_log_probs"][place]
        assert (logprobs[mask] == -0.5).all() and (logprobs[~mask] == 0).all()

        prompt = tokenizer.decode(found.batch["prompts"][place], skip_special_tokens=True)
        assert instance.prompt("turns") in prompt and width >= len(prompt) / 100
        assert sum(expected) > (10 if place != 1 else 8)
    print("ok  verl: PrimeAgentLoop in AgentLoopWorker")


def dense(tokenizer, rows, config):
    """The output by itself, as the trainer with `trainer.use_v1` reads it: a reward at the end of each turn."""
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from prime_bench.integrations.verl_agent import PrimeAgentLoop

    instance = instance_of(rows[0]["extra_info"])
    lines = instance.reference()

    async def play(length):
        config.actor_rollout_ref.rollout.response_length = length
        wrapped, data = DictConfigWrap(config), DictConfigWrap(config.data)
        agent = PrimeAgentLoop(wrapped, Scripted(tokenizer, {instance.prompt("turns"): lines}), tokenizer, None, RLHFDataset, data, "llama")
        return await agent.run({"logprobs": True}, **rows[0])

    whole = asyncio.run(play(RESPONSE))

    expected = rewards_of(instance, lines)
    scores = whole.as_dict()["rm_scores"]
    paid = scores.nonzero().flatten().tolist()
    assert abs(whole.reward_score - sum(expected)) < 1e-9 and whole.num_turns == 2 * len(lines) + 1
    assert all(whole.response_ids[place] == tokenizer.eos_token_id for place in paid), "at the end of a turn"
    assert [round(scores[place].item(), 5) for place in paid] == [round(reward, 5) for reward in expected if reward]
    # Cut off, with room for 16 tokens.
    short = asyncio.run(play(16))
    assert len(short.response_ids) == 16 and short.as_dict()["rm_scores"].shape == (16,)
    assert abs(short.as_dict()["rm_scores"].sum().item() - short.reward_score) < 1e-5
    print("ok  verl: a reward for each turn")


def score(tokenizer, rows, config):
    """`custom_reward_function`, as verl finds and calls it."""
    import torch
    from tensordict import TensorDict
    from verl import DataProto
    from verl.trainer.ppo.reward import load_reward_manager

    async def judge():
        manager = load_reward_manager(config, tokenizer)
        found = []
        for row in rows:
            instance = instance_of(row["extra_info"])
            text = "<actions>\n" + "\n".join(instance.reference()) + "\n</actions>"
            tokens = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
            batch = TensorDict({"responses": tokens, "attention_mask": torch.ones_like(tokens)}, batch_size=1)
            columns = {name: np.array([row[name], None], dtype=object)[:1] for name in row}
            found.append((instance, text, await manager.run_single(DataProto(batch=batch, non_tensor_batch=columns))))
        return found

    for instance, text, result in asyncio.run(judge()):
        assert result["reward_score"] == composite_reward(text, instance).total, result
        assert result["reward_extra_info"]["acc"] == 1.0
        assert json.loads(result["reward_extra_info"]["step_rewards"]) == list(composite_reward(text, instance).steps)
    print("ok  verl: custom_reward_function in NaiveRewardManager")


def openrlhf_agents():
    """`openrlhf.utils.agent` without the rest of the package, which needs flash-attn: its tests load it in the same way."""
    folder = pathlib.Path(importlib.util.find_spec("openrlhf").origin).parent / "utils"
    package = types.ModuleType("openrlhf.utils")
    package.__path__ = [str(folder)]
    sys.modules["openrlhf.utils"] = package
    return importlib.import_module("openrlhf.utils.agent")


class Completions:
    """An engine as OpenRLHF's agents ask it."""

    def __init__(self, tokenizer, texts):
        self.tokenizer, self.texts = tokenizer, list(texts)

    async def generate(self, tokens, sampling_params, multi_modal_data=None):
        text = self.texts.pop(0)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        logprobs = [{token: types.SimpleNamespace(logprob=-0.25)} for token in ids]
        output = types.SimpleNamespace(token_ids=ids, text=text, finish_reason="stop", logprobs=logprobs)
        return types.SimpleNamespace(outputs=[output])


def open_rlhf(tokenizer, turns, whole):
    agent = openrlhf_agents()
    import prime_bench.integrations.openrlhf as ours

    def asked(row):
        return tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True)

    for row in turns:
        instance = instance_of(json.loads(row["label"]))
        lines = ["nonsense", *instance.reference()]
        sampling = types.SimpleNamespace(max_tokens=None, logprobs=1)
        engine = Completions(tokenizer, lines)
        found = asyncio.run(ours.AgentExecutor().execute(asked(row), row["label"], sampling, 8192, tokenizer, engine))
        assert abs(found["reward"] - sum(rewards_of(instance, lines))) < 1e-5 and len(found["action_ranges"]) == len(lines)
        for (start, end), line in zip(found["action_ranges"], lines, strict=True):
            assert tokenizer.decode(found["observation_tokens"][start:end]) == line

    for row in whole:
        instance = instance_of(json.loads(row["label"]))
        text = "<actions>\n" + "\n".join(instance.reference()) + "\n</actions>"
        sampling = types.SimpleNamespace(max_tokens=512, logprobs=1)
        executor = agent.SingleTurnAgentExecutor(ours.__file__)
        engine = Completions(tokenizer, [text])
        found = asyncio.run(executor.execute(asked(row), row["label"], sampling, 8192, tokenizer, engine))
        assert abs(found["reward"].item() - composite_reward(text, instance).total) < 1e-5
        assert found["scores"].item() == 1.0
    print("ok  OpenRLHF: AgentExecutor and reward_func in its agents")


def main(prime):
    from datasets import load_dataset

    with tempfile.TemporaryDirectory() as name:

        folder = pathlib.Path(name)
        files = {style: exported(prime, folder, style) for style in ("turns", "structured")}
        rows = {style: list(load_dataset("parquet", data_files=file, split="train")) for style, file in files.items()}
        tokenizer = saved(folder / "model", [row["prompt"][0]["content"] for of in rows.values() for row in of])
        os.chdir(folder)
        (folder / "prime.yaml").write_text(*blocks_of("yaml"))
        by_function, by_loop = commands()

        played = [{**row, "raw_prompt": row["prompt"]} for row in rows["turns"]]
        config = configured(folder / "model", files["turns"], by_loop)
        loop(folder, tokenizer, played, config)
        dense(tokenizer, played, config)
        config = configured(folder / "model", files["structured"], by_function)
        score(tokenizer, rows["structured"], config)
        open_rlhf(tokenizer, rows["turns"], rows["structured"])


if __name__ == "__main__":
    main(program(sys.argv[1]))
