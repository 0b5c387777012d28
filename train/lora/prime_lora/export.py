"""Writes a trained adapter as a GGUF file that llama.cpp loads beside its base."""

import json
import math
import os
import pathlib
import re

import gguf
import numpy
import safetensors.numpy

from .errors import InputError

# llama.cpp rotates the rows of q and k in interleaved pairs in these architectures, transformers
# in halves; the second factor has the rows of the matrix. In the others both use halves.
PERMUTED = {"llama"}
UNPERMUTED = {"qwen2", "qwen3", "gemma2", "gemma3"}
# The names of architectures in GGUF files, by transformers' `model_type`.
ARCHITECTURES = {"mistral": "llama", "gemma3_text": "gemma3"}
TYPES = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16}
FACTOR = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])\.weight")


def permuted(factor, heads):
    """The rows of a second factor from transformers' order (halves of a head) to llama.cpp's
    (pairs)."""
    rows, rank = factor.shape
    halves = factor.reshape(heads, 2, rows // heads // 2, rank)
    return halves.swapaxes(1, 2).reshape(rows, rank)


def configuration(folder):
    """The configuration of an adapter that PEFT wrote, whose weights are there."""
    folder = pathlib.Path(folder)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} has no {name}: give the folder that PEFT wrote")
    try:
        return json.loads((folder / "adapter_config.json").read_text())
    except ValueError as error:
        raise InputError(f"{folder}/adapter_config.json is not JSON: {error}") from error


def refuse_what_has_no_form(config):
    """Kinds of PEFT adapters that a GGUF adapter cannot hold."""
    unknown = {
        "use_dora": "DoRA",
        "modules_to_save": "whole layers beside the adapter (modules_to_save)",
        "lora_bias": "biases",
        "trainable_token_indices": "trained tokens",
    }
    for key, what in unknown.items():
        if config.get(key):
            raise InputError(f"llama.cpp has no {what}: train without it")
    if config.get("bias", "none") != "none":
        raise InputError("llama.cpp has no trained biases in adapters: train with bias = none")
    if config.get("peft_type") != "LORA":
        raise InputError(f"the adapter is of type {config.get('peft_type')}, not LORA")


def architecture_of(model_type):
    """GGUF's name of an architecture whose layout of q and k is known."""
    name = ARCHITECTURES.get(model_type, model_type)
    if name not in PERMUTED | UNPERMUTED:
        known = ", ".join(sorted(PERMUTED | UNPERMUTED))
        raise InputError(f"cannot export adapters of {model_type} models, only of {known}")
    return name


def factors(folder, config, model):
    """The factors by name of GGUF tensor, as llama.cpp wants them, for one common alpha."""
    name = architecture_of(model.model_type)
    number = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == name)
    names = gguf.get_tensor_name_map(number, model.num_hidden_layers)
    alpha = config["lora_alpha"]
    found = {}
    for key, value in safetensors.numpy.load_file(
        pathlib.Path(folder) / "adapter_model.safetensors"
    ).items():
        match = FACTOR.fullmatch(key)
        tensor = match and names.get_name(match[1])
        if not tensor:
            raise InputError(f"{folder}: llama.cpp has no tensor for {key}")
        if tensor in ("token_embd", "output"):
            raise InputError(f"{folder}: {key} adapts embeddings, which is not exported here")

        value = value.astype(numpy.float32)
        if match[2] == "B":
            own_rank, own_alpha = of_module(config, match[1])
            # llama.cpp scales every pair by the common alpha over its own rank.
            root = math.sqrt(own_rank) if config.get("use_rslora") else own_rank
            value = value * (own_alpha / root) / (alpha / own_rank)
            if name in PERMUTED and tensor.endswith("attn_q"):
                value = permuted(value, model.num_attention_heads)
            elif name in PERMUTED and tensor.endswith("attn_k"):
                value = permuted(value, model.num_key_value_heads or model.num_attention_heads)
        found[f"{tensor}.weight.lora_{match[2].lower()}"] = value
    if not found:
        raise InputError(f"{folder} has no factors of an adapter")
    return name, found


def of_module(config, module):
    """Rank and alpha of a module: PEFT lets patterns override the common ones."""
    values = []
    for key, common in (("rank_pattern", "r"), ("alpha_pattern", "lora_alpha")):
        patterns = config.get(key) or {}
        own = [patterns[p] for p in patterns if re.match(rf"(.*\.)?({p})$", module)]
        values.append(own[0] if own else config[common])
    return values


def write(folder, model, path, *, name, kind="f16", about=None):
    """Writes the adapter of a PEFT folder for a model (its configuration) as a GGUF file, which
    appears when it is whole. `about` are texts for its metadata.

    # Raises
    `InputError` for adapters that llama.cpp cannot apply.
    """
    path = pathlib.Path(path)
    config = configuration(folder)
    refuse_what_has_no_form(config)
    architecture, tensors = factors(folder, config, model)

    unfinished = path.with_name(path.name + ".unfinished")
    writer = gguf.GGUFWriter(unfinished, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
    writer.add_name(name)
    if tokens := config.get("alora_invocation_tokens"):
        writer.add_key_value(
            "adapter.alora.invocation_tokens",
            list(tokens),
            gguf.GGUFValueType.ARRAY,
            sub_type=gguf.GGUFValueType.UINT32,
        )
    for key, text in (about or {}).items():
        writer.add_string(key, text)
    element = {"f32": numpy.float32, "f16": numpy.float16}[kind]
    for tensor, value in sorted(tensors.items()):
        writer.add_tensor(tensor, numpy.ascontiguousarray(value.astype(element)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(unfinished, path)
