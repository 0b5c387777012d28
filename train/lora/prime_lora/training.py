"""The common part of supervised training and GRPO: checkpoints, signals, processor seconds."""

import json
import os
import pathlib
import signal
import time

import torch
import transformers
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from peft.tuners import lora

from .errors import InputError

CLOCK = "clock.json"


def with_adapter(model, recipe, invocation=None):
    """The model with an adapter that is drawn from the recipe's seed and changes nothing yet."""
    names = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules()}
    if missing := set(recipe.targets) - names:
        raise InputError(f"the model has no layers {sorted(missing)}: choose --targets")
    if getattr(model, "is_loaded_in_4bit", False):
        model = prepare_model_for_kbit_training(model)
    elif model.device.type != "cpu":
        # Checkpointed activations need an input with a gradient, and the base is frozen.
        model.enable_input_require_grads()
    torch.manual_seed(recipe.seed)
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=list(recipe.targets),
        task_type="CAUSAL_LM",
        alora_invocation_tokens=invocation,
    )
    return rounded(get_peft_model(model, config))


def rounded(model):
    """Keeps the frozen layers' weights as bf16 on a processor. Autocast multiplies them as bf16
    anyway, and would round all of them again in each pass."""
    if model.device.type == "cpu":
        for layer in model.modules():
            if isinstance(layer, lora.Linear):
                layer.base_layer.to(torch.bfloat16)
        # Trainers generate and grade outside of their own autocast.
        base = model.get_base_model()
        base.forward = torch.autocast("cpu", dtype=torch.bfloat16)(base.forward)
    return model


class Progress(transformers.TrainerCallback):
    """Counts processor seconds over all sittings, writes a line now and then, and turns SIGINT and
    SIGTERM into a checkpoint."""

    def __init__(self, resumed, report):
        self.spent = json.loads((resumed / CLOCK).read_text())["cpu_seconds"] if resumed else 0.0
        self.start = time.process_time()
        self.report, self.stopped = report, False

    def seconds(self):
        return self.spent + time.process_time() - self.start

    def stop(self, *_):
        self.stopped = True

    def on_step_end(self, args, state, control, **_):
        if self.stopped:
            control.should_save = True
            control.should_training_stop = True

    def on_save(self, args, state, control, **_):
        folder = pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}"
        (folder / CLOCK).write_text(json.dumps({"cpu_seconds": self.seconds()}))

    def on_log(self, args, state, control, logs=None, **_):
        if self.report and logs and "loss" in logs:
            figures = {"step": state.global_step, "of": state.max_steps, "loss": logs["loss"]}
            if "reward" in logs:
                figures["reward"] = logs["reward"]
            print(json.dumps(figures | {"cpu_s": round(self.seconds())}), flush=True)


def latest(folder):
    """The newest whole checkpoint of a run, or none. One without a clock was not finished."""
    found = [path for path in pathlib.Path(folder).glob("checkpoint-*") if (path / CLOCK).exists()]
    return max(found, key=lambda path: int(path.name.split("-")[1]), default=None)


def settings(folder, recipe, device, save_steps, logging_steps=10):
    """The arguments that all of TRL's trainers take."""
    on_cpu = device == "cpu"
    return {
        "output_dir": str(folder),
        "max_steps": recipe.steps or -1,
        "num_train_epochs": recipe.epochs,
        "per_device_train_batch_size": recipe.batch,
        "gradient_accumulation_steps": recipe.accumulation,
        "learning_rate": recipe.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": recipe.warmup,
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.clip_norm,
        "optim": "adamw_torch",
        "seed": recipe.seed,
        "data_seed": recipe.seed,
        "save_steps": save_steps,
        "save_total_limit": 2,
        "logging_steps": logging_steps,
        "report_to": "none",
        "include_num_input_tokens_seen": "all",
        "disable_tqdm": True,
        "bf16": True,
        "use_cpu": on_cpu,
        "dataloader_pin_memory": not on_cpu,
        # On a processor time is scarce, on a GPU memory.
        "gradient_checkpointing": not on_cpu,
    }


def run(trainer, folder, resumed, progress):
    """Trains to the end, or to a signal. Returns whether it reached the end."""
    trainer.remove_callback(transformers.PrinterCallback)
    before = {kind: signal.signal(kind, progress.stop) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
    return not progress.stopped or trainer.state.global_step >= trainer.state.max_steps


def begin(folder, recipe, base, data):
    """The folder of a run, which belongs to one recipe, base and data set for good."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "run.json"
    identity = {"recipe": recipe.digest(), "base": base, "data": data}
    if note.exists() and json.loads(note.read_text()) != identity:
        raise InputError(
            f"{folder} has a run of another recipe, base or data: choose another --out"
        )
    unfinished = note.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(identity))
    os.replace(unfinished, note)


def steps_of(recipe, count):
    """Optimizer steps of a recipe with this number of samples."""
    if recipe.steps:
        return recipe.steps
    return max(1, round(recipe.epochs * count / (recipe.batch * recipe.accumulation)))
