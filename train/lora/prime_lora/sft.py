"""Supervised training of an adapter: PEFT's LoRA in TRL's SFTTrainer."""

import dataclasses
import hashlib
import json
import pathlib
import time

import datasets
import torch
from trl import SFTConfig, SFTTrainer

from . import estimate, evaluate, roles, rows, shared_prefix, training
from .errors import InputError

# The functions that make a role's rows from a folder.
ROLES = {
    "executor": lambda folder: rows.chats(rows.read(folder), folder),
    "verifier": roles.verifier_rows,
    "coordinator": roles.coordinator_rows,
}

@dataclasses.dataclass(frozen=True)
class Data:
    """Samples to learn, samples that are held out, and a digest of both."""

    train: list
    held_out: list
    digest: str

    @classmethod
    def of(cls, train, held_out):
        text = json.dumps([[s.prompt, s.completion] for s in [*train, *held_out]])
        return cls(train, held_out, hashlib.sha256(text.encode()).hexdigest()[:16])


def read(folders, tokenizer, recipe, is_held_out, role="executor"):
    """Data sets of a role, told apart by their inputs."""
    found = [row for folder in folders for row in ROLES[role](folder)]
    learnt, kept = rows.split(found, is_held_out)
    if not learnt:
        raise InputError("every row is held out: write more instances")
    train = rows.samples(tokenizer, learnt, recipe.tokens_max)
    held_out = rows.spread(rows.samples(tokenizer, kept, recipe.tokens_max), evaluate.GRADED)
    return Data.of(train, held_out)


def plan(base, data, recipe, device, qlora, forced):
    """The needs of the training, as a line; refuses one that does not fit."""
    parameters, config = base.parameters(), base.config()
    kind = "qlora" if qlora else device
    longest = max(map(len, data.train))
    needed = estimate.memory_bytes(parameters, config, recipe, longest, kind)
    steps = training.steps_of(recipe, len(data.train))
    mean = sum(map(len, data.train)) / len(data.train)
    tokens = steps * recipe.batch * recipe.accumulation * mean
    hours = estimate.seconds(parameters, tokens, estimate.products_per_second(device)) / 3600
    said = estimate.check(needed, hours, device, forced)
    return f"{len(data.train)} samples, {steps} steps, {tokens:.0f} tokens: {said}"


def train(base, data, recipe, folder, device, *, qlora=False, save_steps=50, report=True):
    """Trains, or continues where a checkpoint is. Returns the card, or `None` after a signal."""
    folder = pathlib.Path(folder)
    weights = base.digest()
    training.begin(folder, recipe, f"{weights} in four bits" if qlora else weights, data.digest)
    tokenizer = base.tokenizer()
    model = base.model(device, qlora, folder)
    collator = shared_prefix.collator(model, data.train)
    model = training.with_adapter(model, recipe)

    checkpoints = folder / "checkpoints"
    arguments = SFTConfig(
        **training.settings(checkpoints, recipe, device, save_steps),
        max_length=None,
    )
    resumed = training.latest(checkpoints)
    progress = training.Progress(resumed, report)
    trainer = SFTTrainer(
        model,
        args=arguments,
        train_dataset=datasets.Dataset.from_list([sample.columns() for sample in data.train]),
        data_collator=collator,
        processing_class=tokenizer,
        callbacks=[progress],
    )
    if not training.run(trainer, checkpoints, resumed, progress):
        return None

    seconds = progress.seconds()
    peft = trainer.model
    peft.save_pretrained(folder / "adapter")
    return card(peft, data, tokenizer, seconds, trainer.state) | {
        "recipe": dataclasses.asdict(recipe),
        "base_sha256": weights,
        "data": data.digest,
    }


def card(model, data, tokenizer, seconds, state):
    """The results of a training: the figures of a card."""
    start = time.process_time()
    pad = tokenizer.pad_token_id
    with torch.autocast(next(model.parameters()).device.type, dtype=torch.bfloat16):
        tasks, after = evaluate.by_task(data.held_out, evaluate.exact(model, data.held_out, pad))
        with model.disable_adapter():
            _, before = evaluate.by_task(data.held_out, evaluate.exact(model, data.held_out, pad))
    losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
    return {
        "samples": len(data.train),
        "steps": state.global_step,
        "tokens": int(state.num_input_tokens_seen),
        "loss": losses[-1] if losses else None,
        "cpu_seconds": round(seconds),
        "evaluation_cpu_seconds": round(time.process_time() - start),
        "exact": dataclasses.asdict(after),
        "exact_of_base": dataclasses.asdict(before),
        "exact_by_task": {task: dataclasses.asdict(share) for task, share in tasks.items()},
    }
