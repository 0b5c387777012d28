"""GRPO of single steps: TRL's GRPOTrainer with the rewards of prime-bench's StepEnv."""

import dataclasses
import hashlib
import json
import pathlib

import datasets
import torch
from peft import PeftModel
from trl import GRPOConfig, GRPOTrainer

from . import evaluate, gguf_adapter, rows, training
from .errors import InputError

# Reward of a completion that proposes the reference's step, in addition to the environment's.
RIGHT = 1.0


def action_line(text):
    """The action of a completion: its last line that is not empty."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def reward(text, name, step):
    """The reward of one completion in the state after `step` steps of an instance's reference:
    the environment's (minus the violation score, with a bonus for form), and 1 if it is right."""
    from .tasks import Instance, StepEnv

    env = StepEnv(Instance(*name))
    for _ in range(step):
        env.step(env.reference())
    line = action_line(text)
    is_right = line == env.reference()
    return env.step(line)[1] + (RIGHT if is_right else 0.0)


def step_rewards(completions, step, **columns):
    """The reward function in TRL's form: one value for each completion."""
    names = zip(*(columns[part] for part in rows.NAMES), strict=True)
    return [
        reward(completion[-1]["content"], name, taken)
        for completion, name, taken in zip(completions, names, step, strict=True)
    ]


def beginning(start, base, folder):
    """The PEFT folder of the adapter to start from, a folder itself or a GGUF file, and a digest
    of its factors."""
    if start is None:
        return None, None
    start = pathlib.Path(start)
    if start.is_file():
        start = gguf_adapter.unpack(start, base.config(), folder / "start")
    factors = start / "adapter_model.safetensors"
    if not factors.is_file():
        raise InputError(f"--start {start}: it has no adapter_model.safetensors")
    return start, hashlib.sha256(factors.read_bytes()).hexdigest()


@torch.no_grad()
def grades(model, start, held_out, pad):
    """Exact held-out samples: with the trained adapter, with the one that training started from,
    and with the base alone."""

    def share():
        return evaluate.by_task(held_out, evaluate.exact(model, held_out, pad))

    tasks, after = share()
    with model.disable_adapter():
        _, alone = share()
    card = {
        "exact": dataclasses.asdict(after),
        "exact_of_base": dataclasses.asdict(alone),
        "exact_by_task": {task: dataclasses.asdict(found) for task, found in tasks.items()},
    }
    if start is not None:
        model.load_adapter(str(start), "start")
        model.set_adapter("start")
        card["exact_of_start"] = dataclasses.asdict(share()[1])
        model.set_adapter("default")
    return card


def train(base, folders, recipe, how, folder, device, *, start=None, save_steps=50, report=True):
    """Trains, or continues where a checkpoint is. Returns the card, or `None` after a signal."""
    if recipe.batch * recipe.accumulation % how.group:
        raise InputError(
            f"batch × accumulation is {recipe.batch * recipe.accumulation}: it must be a multiple "
            f"of the group, {how.group}"
        )
    found = [row for part in folders for row in rows.chats(rows.read(part), part)]
    learnt, kept_back = rows.split(found, rows.HeldOut())
    if not learnt:
        raise InputError("every row is held out: write more instances")
    needed = ("prompt", "step", *rows.NAMES)
    learnt = [{name: row[name] for name in needed} for row in learnt]
    folder = pathlib.Path(folder)
    start, origin = beginning(start, base, folder)
    text = json.dumps([learnt, dataclasses.asdict(how), origin])
    data = hashlib.sha256(text.encode()).hexdigest()[:16]
    training.begin(folder, recipe, base.digest(), data)

    tokenizer, model = base.tokenizer(), base.model(device)
    graded = rows.samples(tokenizer, kept_back, recipe.tokens_max)
    graded = rows.spread(graded, evaluate.GRADED)
    if start is None:
        model = training.with_adapter(model, recipe)
    else:
        model = training.rounded(PeftModel.from_pretrained(model, start, is_trainable=True))

    checkpoints = folder / "checkpoints"
    arguments = GRPOConfig(
        **training.settings(checkpoints, recipe, device, save_steps, logging_steps=1),
        num_generations=how.group,
        max_completion_length=how.completion_tokens,
        temperature=how.temperature,
        top_p=how.top_p,
        epsilon=how.clip,
        beta=how.kl,
        loss_type="grpo",
    )
    resumed = training.latest(checkpoints)
    progress = training.Progress(resumed, report)
    trainer = GRPOTrainer(
        model,
        reward_funcs=step_rewards,
        args=arguments,
        train_dataset=datasets.Dataset.from_list(learnt),
        processing_class=tokenizer,
        callbacks=[progress],
    )
    if not training.run(trainer, checkpoints, resumed, progress):
        return None

    seconds = progress.seconds()
    trainer.model.save_pretrained(folder / "adapter")
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    return {
        "prompts": len(learnt),
        "steps": trainer.state.global_step,
        "rewards": rewards,
        "tokens": int(trainer.state.num_input_tokens_seen),
        "cpu_seconds": round(seconds),
        "recipe": dataclasses.asdict(recipe),
        "reinforcement": dataclasses.asdict(how),
        "base_sha256": base.digest(),
        "data": data,
    } | grades(trainer.model, start, graded, tokenizer.pad_token_id)
