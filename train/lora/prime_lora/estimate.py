"""Estimates the needs of a training before anything is loaded: memory and hours."""

import time

import torch

from .errors import InputError

# Bytes of a weight in memory: f32, bf16, or four bits with their scales.
WEIGHT_BYTES = {"cpu": 4.0, "cuda": 2.0, "qlora": 0.6}
# An adapter's weight with its gradient and AdamW's two averages, in f32.
TRAINED_BYTES = 16
# Activations that are kept for the backward pass, in values of the hidden width a token and layer.
KEPT_VALUES = 40
# Share of a matrix product's speed that a training reaches, as measured on SmolLM2-135M.
EFFICIENCY = 0.35


def trained_parameters(config, recipe):
    """Weights of the adapter of a decoder with the usual seven projections."""
    hidden, inner = config.hidden_size, getattr(config, "intermediate_size", 4 * config.hidden_size)
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or hidden // heads
    keys = (getattr(config, "num_key_value_heads", None) or heads) * width
    sizes = {
        "q_proj": hidden + heads * width,
        "k_proj": hidden + keys,
        "v_proj": hidden + keys,
        "o_proj": heads * width + hidden,
        "gate_proj": hidden + inner,
        "up_proj": hidden + inner,
        "down_proj": inner + hidden,
    }
    per_layer = sum(sizes.get(name, 2 * hidden) for name in recipe.targets)
    return recipe.rank * per_layer * config.num_hidden_layers


def memory_bytes(parameters, config, recipe, longest, kind):
    """Weights, adapter and one pass of `recipe.batch` samples of `longest` tokens."""
    tokens = recipe.batch * longest
    kept = tokens * config.num_hidden_layers * config.hidden_size * KEPT_VALUES
    scores = 2 * tokens * config.vocab_size
    trained = trained_parameters(config, recipe)
    values = 4 if kind == "cpu" else 2
    activations = values * kept + 4 * scores
    return int(WEIGHT_BYTES[kind] * parameters + TRAINED_BYTES * trained + activations)


def products_per_second(device):
    """Multiply-adds a second of a bf16 product on this device, measured for a moment."""
    size = 1024 if device == "cpu" else 8192
    with torch.no_grad():
        left = torch.randn(size, size, dtype=torch.bfloat16, device=device)
        done, start = 0, None
        while start is None or time.perf_counter() - start < 0.2:
            product = left @ left
            if device != "cpu":
                torch.cuda.synchronize()
            # The first product also loads libraries.
            start, done = (time.perf_counter(), 0) if start is None else (start, done + 1)
        del product
        return done * size**3 / (time.perf_counter() - start)


def seconds(parameters, tokens, rate):
    """Forward and backward pass without gradients of the base: two products a weight and token."""
    return 2 * parameters * tokens / (EFFICIENCY * rate)


def free_bytes(device):
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def check(needed, hours, device, forced, free=None):
    """A line with the needs of a training. Refuses one that does not fit.

    # Raises
    `InputError` when the device has not the memory, unless `forced`.
    """
    free = free_bytes(device) if free is None else free
    text = f"about {needed / 1e9:.1f} GB of memory and {hours:.1f} hours"
    if free is None:
        return f"{text} (free memory is unknown here)"
    if needed > free and not forced:
        advice = "a smaller --batch, a GPU" if device == "cpu" else "a smaller --batch, --qlora"
        raise InputError(
            f"this training needs {text}, but {free / 1e9:.1f} GB are free: use {advice} or a "
            "smaller model, or --force"
        )
    return f"{text}; {free / 1e9:.1f} GB are free"
