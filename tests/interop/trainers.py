"""TRL trains on what `prime-agents data` writes, with this package's rewards and in its environments: a few steps of a tiny
random model, whose tokenizer is made here too, so that nothing is downloaded. What calls tools is taught to first.

    trainers.py PRIME    the program
"""

import math
import pathlib
import subprocess
import sys
import tempfile

import torch
from datasets import Dataset, load_dataset
from tiny_model import DIALOGUE, DIALOGUE_TOKENS, saved_model, tokenizer_of, tool_tokenizer
from transformers.utils import get_json_schema
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from prime_bench import Instance, StepEnv, composite_reward, create_dataset, judge
from prime_bench.integrations.trl import PrimeEnvironment, composite, correct, rows

STEPS = 3
# Steps in which a dialogue is learnt by heart.
LESSONS = 150


def exported(prime, kind, folder, *options):
    out = folder / kind
    small = ["--task", "bubble-sort", "--difficulty", "easy", "--instances", "4"]
    subprocess.run([prime, "data", kind, "--out", out, *small, *options], check=True, capture_output=True)
    return load_dataset(str(out), split="train")


def settings(folder, **more):
    return {
        "output_dir": str(folder / "out"),
        "max_steps": STEPS,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "bf16": False,
        "learning_rate": 1e-2,
        **more,
    }


def logged(trainer, name):
    """The values of a figure, one a step."""
    trainer.train()
    values = [entry[name] for entry in trainer.state.log_history if name in entry]
    assert trainer.state.global_step == STEPS and len(values) == STEPS, trainer.state.log_history
    assert all(map(math.isfinite, values)), values
    return values


def sft(model, data, tokenizer, folder):
    arguments = SFTConfig(**settings(folder, per_device_train_batch_size=4, max_length=1024))
    trainer = SFTTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer)
    losses = logged(trainer, "loss")
    # A random model knows nothing of 600 tokens, and three steps teach it which are frequent.
    assert losses[-1] < losses[0] < 1.2 * math.log(len(tokenizer)), losses
    print("ok  TRL: SFTTrainer, loss", losses)


def dpo(model, data, tokenizer, folder):
    arguments = DPOConfig(**settings(folder, per_device_train_batch_size=4, max_length=1024))
    trainer = DPOTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer)
    losses = logged(trainer, "loss")
    # Before the first update, the policy is its own reference.
    assert abs(losses[0] - math.log(2)) < 1e-3, losses
    print("ok  TRL: DPOTrainer, loss", losses)


def grpo(model, tokenizer, folder):
    """The rewards in the log are this package's, of the completions that were drawn."""
    seen = []

    def watched(prompts, completions, **columns):
        rewards = composite(prompts, completions, **columns)
        names = zip(columns["task"], columns["difficulty"], columns["index"], columns["base_seed"], strict=True)
        seen.extend(zip([completion[-1]["content"] for completion in completions], names, rewards, strict=True))
        return rewards

    arguments = GRPOConfig(
        **settings(folder, per_device_train_batch_size=4, num_generations=2, max_completion_length=16, temperature=1.0)
    )
    data = Dataset.from_list(rows(create_dataset("bubble-sort", size=8, seed=5)))
    trainer = GRPOTrainer(
        model,
        reward_funcs=[watched, correct],
        args=arguments,
        train_dataset=data,
        processing_class=tokenizer,
    )
    means = logged(trainer, "rewards/watched/mean")

    assert len(seen) >= 4 * STEPS, len(seen)
    for text, name, reward in seen:
        instance = Instance(*name)
        assert reward == composite_reward(text, instance).total and not judge(text, instance).correct, text

    rewards = [reward for _, _, reward in seen]
    assert min(rewards) - 1e-4 <= min(means) and max(means) <= max(rewards) + 1e-4, (means, rewards)
    print("ok  TRL: GRPOTrainer, mean rewards", means)


def dialogue(row):
    """The reference trace as a dialogue in which the model calls the tool, and what our environment answers."""
    env = PrimeEnvironment()
    env.reset(**row)
    said = []
    for line in Instance(*(row[name] for name in ("task", "difficulty", "index", "base_seed"))).reference():
        call = {"type": "function", "function": {"name": "step", "arguments": {"line": line}}}
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        said.append({"role": "tool", "name": "step", "content": env.step(line)})
    return [*said, {"role": "assistant", "content": "Done."}]


def environments(folder):
    """A model that has learnt by heart how one instance is solved with the tool plays it, and is paid for it."""
    torch.manual_seed(7)
    (row,) = rows(create_dataset("gcd-euclidean", size=1, seed=5, style="turns"))
    said, tools = dialogue(row), [get_json_schema(PrimeEnvironment().step)]
    tokenizer = tool_tokenizer([row["prompt"][0]["content"], str(said), str(tools)])
    model = saved_model(tokenizer, folder / "tools", width=64, layers=2)

    taught = Dataset.from_list([{"prompt": row["prompt"], "completion": said, "tools": tools}] * 4)
    lessons = settings(folder, max_steps=LESSONS, per_device_train_batch_size=1, max_length=4096, seed=7)
    teacher = SFTTrainer(model, args=SFTConfig(**lessons), train_dataset=taught, processing_class=tokenizer)
    teacher.train()
    assert teacher.state.log_history[-2]["loss"] < 0.05, teacher.state.log_history[-2:]
    teacher.save_model(model)

    played = []

    class Watched(PrimeEnvironment):
        """Notes what was paid, by the environment of the package itself."""

        def get_reward(self):
            reward = super().get_reward()
            env = StepEnv(self._episode.instance)
            played.append((reward, env, list(self._episode.env.lines), len(self._episode.rewards)))
            return reward

    arguments = GRPOConfig(
        **settings(folder, per_device_train_batch_size=4, learning_rate=1e-6, seed=7),
        num_generations=2,
        max_completion_length=1024,
        max_tool_calling_iterations=2 * len(said),
    )
    trainer = GRPOTrainer(
        model,
        environment_factory=Watched,
        args=arguments,
        train_dataset=Dataset.from_list([row] * 8),
        processing_class=tokenizer,
    )
    means = logged(trainer, "rewards/Watched/mean")

    history = [entry for entry in trainer.state.log_history if "tools/call_frequency" in entry]
    assert all(entry["tools/failure_frequency"] == 0 for entry in history), history
    steps = len(said) // 2
    assert max(entry["tools/call_frequency"] for entry in history) >= 1, history
    assert len(played) == 4 * STEPS

    for reward, env, lines, taken in played:
        for line in lines:
            env.step(line)
        if taken == len(lines):
            # A model that never called the tool has earned nothing.
            assert reward == (env.trajectory_reward().total if lines else 0.0), (reward, lines)

    solved = [reward for reward, _, lines, _ in played if len(lines) == steps and reward > 10]
    assert solved, [(reward, lines) for reward, _, lines, _ in played]
    assert abs(sum(means) / STEPS - sum(reward for reward, *_ in played) / len(played)) < 1e-3, (means, played)
    print(f"ok  TRL: environment_factory, {len(solved)} of {len(played)} episodes solved, mean rewards", means)


def main():
    prime = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        supervised, preferred = exported(prime, "sft", folder), exported(prime, "dpo", folder)
        texts = [message["content"] for row in supervised for message in row["prompt"] + row["completion"]]
        tokenizer = tokenizer_of(texts, DIALOGUE, DIALOGUE_TOKENS)
        model = saved_model(tokenizer, folder / "model")
        sft(model, supervised.select_columns(["prompt", "completion"]), tokenizer, folder)
        dpo(model, preferred.select_columns(["prompt", "chosen", "rejected"]), tokenizer, folder)
        grpo(model, tokenizer, folder)
        environments(folder)


main()
