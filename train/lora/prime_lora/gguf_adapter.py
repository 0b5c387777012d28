"""Turns a GGUF adapter back into a PEFT folder, so that training can start from it."""

import pathlib
import re

import gguf
import numpy
import safetensors.numpy
from peft import LoraConfig

from .base import gguf_reader
from .errors import InputError
from .export import PERMUTED, architecture_of

# The layers of a block by the last part of their tensors' names in a GGUF file.
MODULES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
FACTOR = re.compile(r"blk\.(\d+)\.(\w+)\.weight\.lora_([ab])")


def halved(factor, heads):
    """The rows of a second factor from llama.cpp's order (pairs) to transformers' (halves of a
    head)."""
    rows, rank = factor.shape
    pairs = factor.reshape(heads, rows // heads // 2, 2, rank)
    return pairs.swapaxes(1, 2).reshape(rows, rank)


def unpack(path, model, folder):
    """Writes the adapter of a GGUF file for a model (its configuration) as PEFT would. Its values
    are those of the file, so a file in f16 gives f16 values.

    # Raises
    `InputError` if the file is not an adapter, is of another architecture, or adapts other layers.
    """
    path, folder = pathlib.Path(path), pathlib.Path(folder)
    reader = gguf_reader(path)
    alpha = reader.fields.get("adapter.lora.alpha")
    if alpha is None:
        raise InputError(f"{path} is not an adapter: it has no adapter.lora.alpha")
    architecture = architecture_of(model.model_type)
    own = bytes(reader.fields[gguf.Keys.General.ARCHITECTURE].parts[-1]).decode()
    if own != architecture:
        raise InputError(f"{path} is an adapter of a {own} model, the base is {architecture}")

    key_heads = model.num_key_value_heads or model.num_attention_heads
    heads = {"attn_q": model.num_attention_heads, "attn_k": key_heads}
    factors, ranks = {}, set()
    for tensor in reader.tensors:
        match = FACTOR.fullmatch(tensor.name)
        module = match and MODULES.get(match[2])
        if not module:
            raise InputError(f"{path}: training cannot start from its tensor {tensor.name}")
        value = tensor.data.astype(numpy.float32)
        if match[3] == "a":
            ranks.add(value.shape[0])
        elif architecture in PERMUTED and match[2] in heads:
            value = halved(value, heads[match[2]])
        name = f"base_model.model.model.layers.{match[1]}.{module}.lora_{match[3].upper()}.weight"
        factors[name] = numpy.ascontiguousarray(value)
    if len(ranks) != 1:
        raise InputError(f"{path}: its matrices have the ranks {sorted(ranks)}, not one")

    folder.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(factors, folder / "adapter_model.safetensors")
    LoraConfig(
        r=ranks.pop(),
        lora_alpha=float(alpha.parts[alpha.data[0]][0]),
        target_modules=sorted({name.split(".")[-3] for name in factors}),
        task_type="CAUSAL_LM",
    ).save_pretrained(folder)
    return folder
