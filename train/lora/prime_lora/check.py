"""An exported adapter against PEFT: the file's factors multiplied in numpy, and scores."""

import pathlib

import gguf
import numpy
import torch

from .base import gguf_reader
from .errors import InputError

PROMPTS = (
    "union-find find 10 9\n",
    "What is 12 + 30?",
    "Name a colour.",
    "gcd-euclidean 12 by 8\n",
)
# Largest relative difference of a merged matrix that f16 factors explain.
WEIGHTS_MAX = 5e-3


def applied(path):
    """The change that the file makes to each matrix of the base, by the matrix's name. llama.cpp
    computes it as `alpha / rank` times the product of the factors."""
    reader = gguf_reader(path)
    field = reader.fields.get("adapter.lora.alpha")
    if field is None:
        raise InputError(f"{path} is not an adapter: it has no adapter.lora.alpha")
    alpha = float(field.parts[field.data[0]][0])
    factors = {tensor.name: tensor.data.astype(numpy.float32) for tensor in reader.tensors}
    deltas = {}
    for name, first in factors.items():
        if name.endswith(".lora_a"):
            second = factors.get(name.removesuffix("a") + "b")
            if second is None:
                raise InputError(f"{path} has no partner of {name}")
            deltas[name.removesuffix(".lora_a")] = alpha / first.shape[0] * second @ first
    return deltas


def compare(base, adapter, path):
    """Compares the file's changes with PEFT's own, in the layout of the base's file.

    A base that is a GGUF file is loaded by transformers, which undoes llama.cpp's order of rows;
    a change is right if adding it to the file's own matrix and loading that gives PEFT's merged
    matrix. Here the same order is undone on the change alone, since loading is linear in it.
    """
    from peft import PeftModel

    from .export import PERMUTED, architecture_of, configuration

    configuration(adapter)
    deltas = applied(pathlib.Path(path))
    model = base.model("cpu")
    config = model.config
    names = gguf.get_tensor_name_map(
        next(
            k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture_of(config.model_type)
        ),
        config.num_hidden_layers,
    )
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    tuned = PeftModel.from_pretrained(model, adapter)
    worst, seen = 0.0, 0
    for name, module in tuned.named_modules():
        if not hasattr(module, "get_delta_weight"):
            continue
        wanted = module.get_delta_weight("default").detach().numpy()
        tensor = names.get_name(name.removeprefix("base_model.model."))
        found = deltas.get(f"{tensor}.weight")
        if found is None or found.shape != wanted.shape:
            raise InputError(f"{path} does not fit {adapter}: {tensor}.weight is missing or unlike")
        kind = tensor.rsplit(".", 1)[-1]
        if architecture_of(config.model_type) in PERMUTED and kind in heads:
            # llama.cpp's pairs back to halves.
            rows, width = found.shape
            pairs = found.reshape(heads[kind], rows // heads[kind] // 2, 2, width)
            found = pairs.swapaxes(1, 2).reshape(rows, width)
        scale = max(float(numpy.abs(wanted).max()), 1e-12)
        worst = max(worst, float(numpy.abs(found - wanted).max()) / scale)
        seen += 1
    return {"matrices": seen, "worst_relative": worst, "agrees": seen > 0 and worst < WEIGHTS_MAX}


@torch.no_grad()
def scores(model, tokenizer, text):
    """Log-probabilities of the next token after a user's message, by token id."""
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_tensors="pt"
    )
    ids = ids["input_ids"] if not torch.is_tensor(ids) else ids
    return ids[0].tolist(), torch.log_softmax(model(ids).logits[0, -1].float(), -1)
