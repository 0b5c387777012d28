"""Batches in which the common prefix of all prompts is computed once.

Chats begin with the same system message, which is half of a short sample. A batch is one row: the
common prefix, then each sample's own tokens, which see the prefix and themselves, at the positions
that they have alone. The losses are those of padded rows, to rounding.
"""

import os

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .errors import InputError

ATTENTION = "shared_prefix"


def common_prefix(samples):
    """Tokens that all prompts begin with. Each prompt keeps at least one token of its own, because
    the last token of a prompt predicts the first of its answer."""
    shortest = min(len(sample.prompt) for sample in samples)
    return min(len(os.path.commonprefix([sample.prompt for sample in samples])), shortest - 1)


class SharedPrefix:
    """Makes a batch of samples that begin with the same `length` tokens."""

    def __init__(self, length):
        self.length = length

    def __call__(self, features):
        length = self.length
        ids, labels = list(features[0]["input_ids"][:length]), [-100] * length
        positions, ends = list(range(length)), [length]
        for feature in features:
            own = feature["input_ids"][length:]
            ids += own
            labels += feature["labels"][length:]
            positions += range(length, length + len(own))
            ends.append(ends[-1] + len(own))
        return {
            "input_ids": torch.tensor([ids]),
            "labels": torch.tensor([labels]),
            "position_ids": torch.tensor([positions]),
            "prefix_and_samples": ends,
        }


def attention(module, query, key, value, mask, prefix_and_samples=None, **options):
    """Attention of a row whose prefix ends at the first of `prefix_and_samples` and whose samples
    end at the others; of padded rows without them.

    Each sample is a causal sequence with its own copy of the prefix. One attention over the whole
    row would take time that grows with the square of the batch, most of it for masked scores.
    """
    if prefix_and_samples is None:
        if module.training:
            raise InputError("the model's layers drop a batch's arguments, so samples would mix")
        return sdpa_attention_forward(module, query, key, value, mask, **options)

    options = {name: options.get(name) for name in ("scaling", "dropout")}
    begins = [0, *prefix_and_samples[:-1]]
    sizes = [end - begin for begin, end in zip(begins, prefix_and_samples, strict=True)]
    (prefix, *samples) = zip(
        *(part.split(sizes, dim=2) for part in (query, key, value)), strict=True
    )
    outputs = []
    for sample in samples:
        parts = (torch.cat(both, dim=2) for both in zip(prefix, sample, strict=True))
        found, _ = sdpa_attention_forward(module, *parts, None, is_causal=True, **options)
        # The prefix sees itself alone, so all samples find the same for it.
        outputs.append(found[:, sizes[0] :] if outputs else found)
    return torch.cat(outputs, dim=1), None


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def collator(model, samples):
    """The collator for a model, which gets the attention that belongs to it, or `None` where rows
    must be padded: a window of attention counts places in the row, which are not positions here."""
    if getattr(model.config, "sliding_window", None):
        return None
    model.set_attn_implementation(ATTENTION)
    return SharedPrefix(common_prefix(samples))
