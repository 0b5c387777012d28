"""The command line."""

import argparse
import dataclasses
import json
import os
import pathlib
import sys

from .errors import InputError

STOPPED = 130


def recipe_options(parser):
    """An option for each setting of a recipe, over the preset's."""
    from .recipe import PRESETS, Recipe

    parser.add_argument("--preset", choices=sorted(PRESETS), default="default")
    for field in dataclasses.fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        if field.name == "targets":
            parser.add_argument(flag, help="names of linear layers, with commas")
        else:
            parser.add_argument(flag, type=type(getattr(PRESETS["default"], field.name)))


def recipe_of(arguments):
    from .recipe import PRESETS, Recipe

    given = {
        field.name: getattr(arguments, field.name)
        for field in dataclasses.fields(Recipe)
        if getattr(arguments, field.name) is not None
    }
    if "targets" in given:
        given["targets"] = tuple(name for name in given["targets"].split(",") if name)
    return dataclasses.replace(PRESETS[arguments.preset], **given)


def training_options(parser):
    parser.add_argument("--base", required=True, help="a GGUF file or a Hugging Face folder")
    parser.add_argument("--data", action="append", required=True, help="data set; repeatable")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder of the run")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--threads", type=int, default=1, help="threads of a processor")
    parser.add_argument("--qlora", action="store_true", help="base in four bits (needs a GPU)")
    parser.add_argument("--save-steps", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--force", action="store_true", help="train though memory is short")
    recipe_options(parser)


def write_json(path, value):
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    os.replace(unfinished, path)


def finish(arguments, card):
    """Writes the card, or says how to continue."""
    if card is None:
        print(f"stopped; the same command continues {arguments.out}", file=sys.stderr)
        return STOPPED
    write_json(arguments.out / "card.json", card)
    print(json.dumps(card))
    return 0


def sft(arguments):
    from . import rows, sft
    from .base import Base, device_of

    recipe, base = recipe_of(arguments), Base.at(arguments.base)
    device = device_of(arguments.device)
    held_out = {
        "executor": rows.HeldOut(),
        "verifier": rows.HeldOut(),
        "coordinator": rows.HeldOut(),
    }
    data = sft.read(
        arguments.data, base.tokenizer(), recipe, held_out[arguments.role], arguments.role
    )
    print(sft.plan(base, data, recipe, device, arguments.qlora, arguments.force), file=sys.stderr)
    if arguments.plan:
        return 0
    card = sft.train(
        base,
        data,
        recipe,
        arguments.out,
        device,
        qlora=arguments.qlora,
        save_steps=arguments.save_steps,
    )
    return finish(arguments, card and card | {"role": arguments.role})


def grpo(arguments):
    from . import grpo
    from .base import Base, device_of
    from .recipe import Reinforcement

    recipe, base = recipe_of(arguments), Base.at(arguments.base)
    card = grpo.train(
        base,
        arguments.data,
        recipe,
        Reinforcement(group=arguments.group),
        arguments.out,
        device_of(arguments.device),
        start=arguments.start,
        save_steps=arguments.save_steps,
    )
    return finish(arguments, card and card | {"role": "executor"})


def export(arguments):
    from . import export
    from .base import Base

    base = Base.at(arguments.base)
    export.write(
        arguments.adapter,
        base.config(),
        arguments.out,
        name=arguments.name or arguments.out.stem,
        kind=arguments.type,
        about={"prime_agents.prompt": arguments.prompt} if arguments.prompt else None,
    )
    print(arguments.out)
    return 0


def check(arguments):
    from . import check
    from .base import Base

    found = check.compare(Base.at(arguments.base), arguments.adapter, arguments.gguf)
    print(json.dumps(found))
    return 0 if found["agrees"] else 1


def parse(given):
    parser = argparse.ArgumentParser(prog="prime-lora", description="Trains LoRA adapters.")
    commands = parser.add_subparsers(dest="command", required=True)

    one = commands.add_parser("sft", help="supervised training on a data set")
    training_options(one)
    one.add_argument("--role", choices=("executor", "verifier", "coordinator"), default="executor")
    one.add_argument("--plan", action="store_true", help="print what it needs, and train nothing")
    one.set_defaults(run=sft)

    one = commands.add_parser("grpo", help="reinforcement learning of single steps")
    training_options(one)
    one.add_argument("--start", help="adapter to start from: a folder of PEFT, a GGUF file")
    one.add_argument("--group", type=int, default=8, help="completions of a prompt")
    one.set_defaults(run=grpo)

    one = commands.add_parser("export", help="a trained adapter as a GGUF file")
    one.add_argument("--base", required=True)
    one.add_argument("--adapter", required=True, help="folder that PEFT wrote")
    one.add_argument("--out", required=True, type=pathlib.Path, help="the file to write")
    one.add_argument("--name", help="general.name of the file")
    one.add_argument("--type", choices=("f16", "f32"), default="f16")
    one.add_argument(
        "--prompt",
        choices=("compact", "step"),
        help="template of the executor's prompts in the training data, for `prime-agents --adapter`",
    )
    one.set_defaults(run=export)

    one = commands.add_parser("check", help="an exported adapter against PEFT, in numbers")
    one.add_argument("--base", required=True)
    one.add_argument("--adapter", required=True, help="folder that PEFT wrote")
    one.add_argument("--gguf", required=True, type=pathlib.Path, help="the exported file")
    one.set_defaults(run=check)
    return parser.parse_args(given)


def quieten():
    """Keeps progress bars and remarks of libraries out of the output."""
    # Before the first import of tqdm: GGUF files are converted under a bar of its own.
    os.environ.setdefault("TQDM_DISABLE", "1")
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def main(given=None):
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    arguments = parse(given)
    quieten()
    try:
        if hasattr(arguments, "threads"):
            import torch

            if arguments.threads < 1:
                raise InputError(f"--threads {arguments.threads}: at least 1")
            torch.set_num_threads(arguments.threads)
        status = arguments.run(arguments)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        status = 2
    sys.exit(status)
